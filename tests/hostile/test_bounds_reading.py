"""What a recording makes a reader hold beside its batches: early segments, names and long bodies. Measured in a process
of its own, which has read less of the same before."""

from pathlib import Path

from kafkascope import limits
from kafkascope.codec.frame import encode_frame
from tests.hostile.child import run
from tests.hostile.test_bounds_codec import uvarint
from tests.support.packet_build import Talk, pcap
from tests.support.traffic import request, response

MIB = 1 << 20
EARLY = """
from kafkascope.capture.base.flow import Flows, PieceKind
from kafkascope.capture.tcp.reassembly import Reassembler
from tests.capture.tcp.test_reassembly import CLIENT, opened, seg
from tests.support.flows import endpoints, segments
SIZE = 60_000
def feed(size):
    reassembler = Reassembler(Flows([endpoints(0)]))
    reassembler.feed(segments(opened()))
    held = most = 0
    for number in range(size // SIZE):
        pieces = reassembler.feed(segments([seg(CLIENT, 1001 + number * SIZE, bytes(SIZE))]))
        held += SIZE - int(pieces.length[pieces.kind == PieceKind.BYTES].sum())
        most = max(most, held)
    print(most)
feed(10 * SIZE)
"""


def test_early_bytes_of_one_stream_take_what_their_cap_says() -> None:
    """MAX_EARLY_BYTES: 64 MiB after a byte that never comes. What is kept is there up to three times while it moves."""
    ran = run(EARLY, f"feed({64 * MIB})")
    most = int(ran.output.splitlines()[-1])
    assert limits.MAX_EARLY_BYTES - 120_000 < most <= limits.MAX_EARLY_BYTES
    assert limits.MAX_EARLY_BYTES < ran.peak < 3 * limits.MAX_EARLY_BYTES


READ = """
from pathlib import Path
from kafkascope.capture.exchanges.name_cache import NameCache
from kafkascope.capture.reader import Reading, decode_messages, read
from kafkascope.columnar.decode import ERROR
def listed(file):
    return sum(exchange.status == "answered" for exchange in read(Path(sys.argv[1], file)))
def learned(file):
    knowledge = NameCache()
    for batch in Reading(Path(sys.argv[1], file), names=True).batches():
        knowledge.learn(batch)
    return len(knowledge.topics)
def columns(file):
    tables = [one.table for one in decode_messages(Path(sys.argv[1], file)) if one.name == "MetadataRequest"]
    return [reason for table in tables for reason in table[ERROR].to_pylist()]
def more(work, file):
    before = _peak()
    return work(file), _peak() - before
"""


def recording(calls: list[tuple[bytes, bytes]]) -> bytes:
    """Requests and their responses, without lengths."""
    talk = Talk(segment_bytes=60_000, step_ns=1_000).open()
    talk.say(0, request("ApiVersions", 3, 1)).say(1, response("ApiVersions", 3, 1))
    for sent, answer in calls:
        for direction, frame in enumerate((sent, answer)):
            talk.say(direction, len(frame).to_bytes(4, "big") + frame)
    return pcap(talk.close().packets)


HEAD = {"correlationId": 9, "clientId": "app"}
ANSWERS, TOPICS = 20, 10_000


def topics(answer: int, ids: bool) -> bytes:
    """A Metadata response v12: topics of its own, with ids or without."""
    numbers = range(answer * TOPICS, (answer + 1) * TOPICS)
    rows = [b"\0\0\x10topic-%09d" % n + (n + 5 if ids else 0).to_bytes(16, "big") for n in numbers]
    head = (9).to_bytes(4, "big") + b"\0" + bytes(4) + b"\x01\0" + b"\xff" * 4
    return head + uvarint(TOPICS + 1) + b"".join(row + b"\0\x01\x80\0\0\0\0" for row in rows) + b"\0"


def test_names_of_topics_take_what_their_cap_says(tmp_path: Path) -> None:
    """MAX_LEARNT_BYTES: of 200,000 topics, beside what those take that have no ids, of which nothing is learned. Names
    come and go among values of responses, which leaves as much between them."""
    metadata_request = encode_frame("MetadataRequest", 12, {"topics": None}, HEAD, length=False)
    for name, ids in (("plain", False), ("ids", True)):
        calls = [(metadata_request, topics(answer, ids)) for answer in range(ANSWERS)]
        (tmp_path / name).write_bytes(recording(calls))
    ran = run(READ, "print(learned('plain'), *more(learned, 'ids'))", str(tmp_path))
    plain, kept, grown = map(int, ran.output.split())
    assert plain == 0 and TOPICS < kept < ANSWERS * TOPICS
    assert limits.MAX_LEARNT_BYTES / 2 < grown < 2 * limits.MAX_LEARNT_BYTES


def empty_names(size: int) -> bytes:
    """A Metadata request v9 of topics with empty names, two bytes each: the body that grows most as columns."""
    count = size // 2 - 8
    plain = encode_frame("MetadataRequest", 9, {"topics": []}, HEAD, length=False)
    assert plain.endswith(bytes.fromhex("01 01 00 00 00"))
    return plain[:-5] + uvarint(count + 1) + b"\x01\0" * count + plain[-4:]


def test_a_long_body_takes_what_its_cap_says(tmp_path: Path) -> None:
    """MAX_BODY_BYTES: as columns, beside what listing the same takes; one that is longer takes nothing."""
    answer = encode_frame("MetadataResponse", 9, {}, {"correlationId": 9}, length=False)
    for name, size in (("long", limits.MAX_BODY_BYTES), ("longer", 3 * limits.MAX_BODY_BYTES)):
        (tmp_path / name).write_bytes(recording([(empty_names(size), answer)]))
    code = "for file in ('long', 'longer'):\n    listed(file)\n    print(*more(columns, file), sep='|')"
    ran = run(READ, code, str(tmp_path))
    (whole, taken), (refused, more) = (line.split("|") for line in ran.output.splitlines())
    assert whole == "[None]" and f"a body of more than {limits.MAX_BODY_BYTES} bytes" in refused
    assert limits.MAX_BODY_BYTES < int(taken) < 10 * limits.MAX_BODY_BYTES
    assert int(more) < limits.MAX_BODY_BYTES


def odd_names(size: int) -> bytes:
    """A Metadata request v1 of names of 30 letters, with a byte too many."""
    count = size // 32
    plain = encode_frame("MetadataRequest", 1, {"topics": []}, HEAD, length=False)
    return plain[:-4] + count.to_bytes(4, "big") + (b"\0\x1e" + b"x" * 30) * count + b"\0"


def test_an_odd_frame_takes_what_its_cap_says(tmp_path: Path) -> None:
    """MAX_CAREFUL_FRAME_BYTES: up to twenty times its size as Python values; one that is longer takes nothing."""
    answer = encode_frame("MetadataResponse", 1, {}, {"correlationId": 9}, length=False)
    cap = limits.MAX_CAREFUL_FRAME_BYTES
    for name, size in (("small", 1_000), ("long", cap - 64), ("longer", 3 * cap)):
        (tmp_path / name).write_bytes(recording([(odd_names(size), answer)]))
    code = "listed('small')\nfor file in ('long', 'longer'):\n    print(*more(listed, file))"
    ran = run(READ, code, str(tmp_path))
    (read, taken), (refused, more) = (map(int, line.split()) for line in ran.output.splitlines())
    assert (read, refused) == (2, 1)
    assert cap < taken < limits.MAX_VALUE_RATIO * cap
    assert more < cap


SESSION = """
from tests.capture.exchanges.test_exchanges import fetch
from tests.support.frames import Wire
def whole(changes):
    wire = Wire()
    fetch(wire, 0, 0, 0, [f"t{number}" for number in range(20_000)])
    for number in range(changes):
        fetch(wire, number, 5, number + 1, [f"new{number}"])
    return sum(len(exchange.topics) > 20_000 for exchange in list(wire.exchanges()))
print(whole(2))
"""


def test_topics_of_sessions_take_what_their_cap_says() -> None:
    """MAX_SESSION_NAME_BYTES: 400 fetches that change a session of 20,000 topics, which would be 64 MB of lists."""
    ran = run(SESSION, "print(whole(400))")
    few, many = map(int, ran.output.split())
    assert few == 2 and 50 < many < 150
    assert ran.peak < limits.MAX_SESSION_NAME_BYTES + 8 * MIB
