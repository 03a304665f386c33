"""A well-formed message and a random source in, broken relatives of it out: the same seed, the same bytes.

Counts, lengths, tag numbers, sizes and presence bytes are found through the message's own spans, so that edits hit them
rather than the middle of a string.
"""

from collections.abc import Callable, Iterator
from random import Random

from kafkascope.codec.result import Span

FRAMING = ("#count", "#length", "#present", "#tags", "#tag", "#size")
# Around every boundary that a length or count can trip over: zero, one-byte varints, int16, int32.
NEAR = (
    0,
    1,
    2,
    126,
    127,
    128,
    129,
    255,
    16_383,
    16_384,
    32_766,
    32_767,
    32_768,
    65_535,
    2**21,
    2**28,
    2**31 - 2,
    2**31 - 1,
)
CLASSIC_SIZES = {"int8": 1, "int16": 2, "int32": 4}


def truncations(data: bytes) -> Iterator[bytes]:
    """Cut at every byte, the empty message first."""
    return (data[:end] for end in range(len(data)))


def mutation(data: bytes, spans: tuple[Span, ...], random: Random) -> tuple[str, bytes]:
    """One edit or a few, with the name of the first for the failure message."""
    kind = random.choice(KINDS)
    edited = kind(data, spans, random)
    for _ in range(random.choice((0, 0, 0, 1, 3))):
        # Spans no longer fit after the first edit: the rest needs none.
        edited = random.choice((flip_bit, set_byte, insert_bytes, delete_bytes, append_junk))(edited, (), random)
    return kind.__name__, edited


def flip_bit(data: bytes, _spans: tuple[Span, ...], random: Random) -> bytes:
    if not data:
        return b"\x01"
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]


def set_byte(data: bytes, _spans: tuple[Span, ...], random: Random) -> bytes:
    if not data:
        return b"\xff"
    at = random.randrange(len(data))
    return data[:at] + bytes([random.choice((0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF))]) + data[at + 1 :]


def insert_bytes(data: bytes, _spans: tuple[Span, ...], random: Random) -> bytes:
    at = random.randint(0, len(data))
    return data[:at] + random.choice((b"\x00", b"\x01", b"\xff", b"\x80", random.randbytes(4))) + data[at:]


def delete_bytes(data: bytes, _spans: tuple[Span, ...], random: Random) -> bytes:
    at = random.randint(0, len(data))
    return data[:at] + data[at + random.choice((1, 1, 2, 4)) :]


def append_junk(data: bytes, _spans: tuple[Span, ...], random: Random) -> bytes:
    return data + random.choice((b"\x00", data[:7], random.randbytes(random.randint(1, 20))))


def random_bytes(data: bytes, _spans: tuple[Span, ...], random: Random) -> bytes:
    size = random.choice((0, 1, 2, 4, len(data), random.randint(0, 64)))
    # Random bytes alone hardly ever pass the first length: small ones get deeper.
    return bytes(random.choice((0, 0, 1, 1, 2, 3, 0xFF, random.randrange(256))) for _ in range(size))


def edit_framing(data: bytes, spans: tuple[Span, ...], random: Random) -> bytes:
    """Another number in a count, length, tag, size or presence byte, written in that place's own way."""
    span = _framing(spans, random)
    if span is None:
        return flip_bit(data, spans, random)
    raw = data[span.start : span.end]
    if span.type == "uvarint":
        now = _read_uvarint(raw)
        number = max(
            0, random.choice((now - 1, now + 1, now + random.randint(-4, 4), random.choice(NEAR), 2**31, 2**32 - 1))
        )
        return data[: span.start] + uvarint(number) + data[span.end :]
    size = CLASSIC_SIZES[span.type]
    now = int.from_bytes(raw, "big", signed=True)
    number = random.choice(
        (-1, -2, now - 1, now + 1, -(2 ** (8 * size - 1)), 2 ** (8 * size - 1) - 1, random.choice(NEAR))
    )
    edited: bytes = (number % (1 << 8 * size)).to_bytes(size, "big")
    return data[: span.start] + edited + data[span.end :]


def stretch_varint(data: bytes, spans: tuple[Span, ...], random: Random) -> bytes:
    """The same number in more bytes than it needs, up to one more than an int32 ever takes."""
    prefix = _framing(tuple(span for span in spans if span.type == "uvarint"), random)
    if prefix is None:
        return append_junk(data, spans, random)
    return (
        data[: prefix.start]
        + stretched(_read_uvarint(data[prefix.start : prefix.end]), random.randint(1, 6))
        + data[prefix.end :]
    )


def repeat_tag(data: bytes, spans: tuple[Span, ...], random: Random) -> bytes:
    """A tag section with one tag more: an unknown one, a known one again, in any order."""
    counts = [span for span in spans if span.path.endswith("#tags")]
    if not counts:
        return insert_bytes(data, spans, random)
    count_span = random.choice(counts)
    number = _read_uvarint(data[count_span.start : count_span.end])
    added = uvarint(random.choice((0, 1, 2, 3, 127, 128, 70_000))) + random.choice((b"\x00", b"\x01\x00", b"\x02ab"))
    return data[: count_span.start] + uvarint(number + 1) + added + data[count_span.end :]


def overwrite_value(data: bytes, spans: tuple[Span, ...], random: Random) -> bytes:
    """Other bytes inside a value: bools of 2, broken UTF-8, any number."""
    values = [span for span in spans if "#" not in span.path and span.end > span.start]
    if not values:
        return set_byte(data, spans, random)
    span = random.choice(values)
    fill = random.choice((b"\x00", b"\x02", b"\xff", b"\xc3", b"\xed\xa0\x80", random.randbytes(span.end - span.start)))
    size = span.end - span.start
    return data[: span.start] + (fill * size)[:size] + data[span.end :]


KINDS: tuple[Callable[[bytes, tuple[Span, ...], Random], bytes], ...] = (
    flip_bit,
    set_byte,
    insert_bytes,
    delete_bytes,
    append_junk,
    random_bytes,
    edit_framing,
    edit_framing,
    edit_framing,
    stretch_varint,
    repeat_tag,
    overwrite_value,
)


def _framing(spans: tuple[Span, ...], random: Random) -> Span | None:
    prefixes = [span for span in spans if span.path.endswith(FRAMING)]
    return random.choice(prefixes) if prefixes else None


def uvarint(number: int) -> bytes:
    """Our own, not the codec's: it must not share its mistakes."""
    groups = [number & 0x7F]
    while number := number >> 7:
        groups.append(number & 0x7F)
    return bytes([group | 0x80 for group in groups[:-1]] + groups[-1:])


def stretched(number: int, extra: int) -> bytes:
    short = uvarint(number)
    return short[:-1] + bytes([short[-1] | 0x80]) + b"\x80" * (extra - 1) + b"\x00"


def _read_uvarint(raw: bytes) -> int:
    return sum((byte & 0x7F) << 7 * index for index, byte in enumerate(raw))
