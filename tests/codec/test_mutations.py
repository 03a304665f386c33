"""Broken relatives of every (message, version): only DecodeError comes out, and what decodes is exact if it says so.

`KAFKASCOPE_SOAK` set: 5,000 mutations a pair instead of 200. A failure prints the seed and the bytes that caused it.
"""

import os
from random import Random
from typing import Any

import pytest

import kafkascope
from kafkascope.codec.fast.engine import FastDecoder
from kafkascope.codec.result import Decoded, Span
from kafkascope.errors import DecodeError, EncodeError
from kafkascope.schema.catalog import message
from kafkascope.schema.layouts.layout import layout
from tests.judge.java import NOT_ASKED, judge
from tests.support.mutations import mutation, truncations
from tests.support.pairs import CHUNKS, chunk_of, every_pair, every_place
from tests.support.values import random_value
from tests.support.variety import careful, fast_engines, lengthened, same

SOAK = bool(os.environ.get("KAFKASCOPE_SOAK"))
MUTATIONS = 5_000 if SOAK else 200
SEED = 11
# Random values to mutate, and the size that keeps a normal run short.
BASES = 24
LARGEST = 4_000 if SOAK else 400
TRUNCATED = LARGEST if SOAK else 100


def bases(name: str, version: int, release: str | None = None) -> list[tuple[bytes, tuple[Span, ...]]]:
    """Encoded values with their spans, the smallest first; long arrays of alike elements are among them."""
    known = layout(name, version, release)
    random = Random(f"{name} {version} {SEED} long")
    values = [random_value(known, case) for case in range(BASES)]
    values += [lengthened(known, values, random, (7, 12)) for _ in range(6)]
    encoded = sorted(
        {kafkascope.encode(name, version, value, release) for value in values}, key=lambda data: (len(data), data)
    )
    # Some messages have no small values.
    kept = [data for data in encoded if len(data) <= LARGEST] or encoded[:1]
    return [(data, kafkascope.decode(name, version, data, release, spans=True).spans) for data in kept]


def check(
    name: str, version: int, data: bytes, fast: dict[str, FastDecoder], release: str | None = None
) -> Decoded | None:
    """The invariant: DecodeError, or a value that all engines agree on and that is exact if and only if it says so."""
    try:
        decoded = kafkascope.decode(name, version, data, release)
    except DecodeError as error:
        text = str(error)
        assert text.startswith(f"{name} v{version}"), text
        assert "\n" not in text, text
        offset = int(text.rpartition("(offset ")[2].removesuffix(")"))
        assert 0 <= offset <= len(data), text
        for engine, read in fast.items():
            assert read(data, 0) is None, f"the {engine} engine reads what the careful one refuses"
        return None
    assert decoded.exact == (not decoded.reasons)
    walked = careful(name, version, data, release)
    assert same(walked.value, decoded.value)
    assert walked.reasons == decoded.reasons
    assert walked.unknown_tags == decoded.unknown_tags
    for engine, read in fast.items():
        fast_reading = read(data, 0)
        if fast_reading is not None:
            assert same(fast_reading.value, decoded.value), f"the {engine} engine differs"
            assert decoded.exact, f"the {engine} engine reads what is not canonical"
            assert fast_reading == walked, engine
    try:
        written = kafkascope.encode(name, version, decoded.value, release)
    except EncodeError:
        # A tag that stands twice, a text that replacement characters made too long.
        assert not decoded.exact
        return decoded
    if decoded.exact:
        assert written == data, "exact, but encoding gives other bytes"
    else:
        assert written != data, f"said to be inexact, but the bytes are the same: {decoded.reasons}"
        again = kafkascope.decode(name, version, written, release)
        assert again.exact, f"what encode writes is not exact: {again.reasons}"
        assert same(tags_sorted(again.value), tags_sorted(decoded.value))
    return decoded


def tags_sorted(value: Any) -> Any:
    """Tags come back sorted: their order is no part of the value."""
    if isinstance(value, dict):
        return {
            name: sorted(item, key=lambda tag: tag["tag"]) if name == "_unknownTaggedFields" else tags_sorted(item)
            for name, item in value.items()
        }
    return [tags_sorted(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_mutations_raise_decode_error_or_tell_the_truth(chunk: int) -> None:
    for name, version, release in chunk_of(every_place(), chunk):
        fast = fast_engines(layout(name, version, release))
        made = bases(name, version, release)
        whole = [data for data, _ in made if len(data) <= TRUNCATED] or [made[0][0]]
        cuts = list(truncations(whole[-1]))[:MUTATIONS]
        for data in cuts:
            run(name, version, release, data, fast, "truncated")
        for case in range(MUTATIONS - len(cuts)):
            random = Random(f"{name} {version} {release} {SEED} {case}")
            data, spans = random.choice(made)
            kind, mutated = mutation(data, spans, random)
            run(name, version, release, mutated, fast, f"{kind}, seed {SEED}, case {case}")


def run(name: str, version: int, release: str | None, data: bytes, fast: dict[str, FastDecoder], origin: str) -> None:
    try:
        decoded = check(name, version, data, fast, release)
    except Exception as error:
        where = f"{name} v{version}{f' of {release}' if release else ''}"
        raise AssertionError(f"{where} ({origin}): {type(error).__name__}: {error}\n{data.hex()}") from error
    # A message that reads to its last byte cannot be read without it.
    assert origin != "truncated" or decoded is None, f"{name} v{version}: read although cut\n{data.hex()}"


JUDGED = 300 if SOAK else 25


@pytest.mark.heavy
def test_java_reads_exactly_what_we_read() -> None:
    """The same bytes to Kafka's own reader: it refuses where we refuse, and writes again what we write again."""
    version_name, release = "4.4.0", "4.4"
    cases = []
    for name, version in every_pair():
        versions = message(name).versions_in(release)
        # What the newest release does not lay out itself, and records that it has not published, have no judge here.
        if versions is None or version not in versions or message(name).kind not in ("request", "response", "header"):
            continue
        made = bases(name, version, release)
        for case in range(JUDGED):
            random = Random(f"{name} {version} {SEED} judged {case}")
            data, spans = random.choice(made)
            kind, mutated = mutation(data, spans, random)
            cases.append((name, version, kind, case, mutated))
    judged = [(message(name).name_in(release), version, NOT_ASKED, data.hex()) for name, version, _, _, data in cases]
    wrong = []
    for (name, version, kind, case, data), verdict in zip(cases, judge(version_name, judged), strict=True):
        ours, exact = rewritten(name, version, data, release)
        theirs = verdict.rewritten
        if ours == theirs or (ours.startswith("!") and theirs.startswith("!")) or excused(ours, exact, theirs):
            continue
        wrong.append(
            f"{name} v{version} ({kind}, seed {SEED}, case {case}): we {ours[:200]}, Java {theirs[:200]}\n{data.hex()}"
        )
    print(f"\n{len(cases)} mutations, {len(wrong)} differ")
    assert not wrong, "\n".join(wrong[:10])


def rewritten(name: str, version: int, data: bytes, release: str) -> tuple[str, bool]:
    try:
        decoded = kafkascope.decode(name, version, data, release)
        return kafkascope.encode(name, version, decoded.value, release).hex(), decoded.exact
    except (DecodeError, EncodeError) as error:
        return f"!{error}", False


def excused(ours: str, exact: bool, theirs: str) -> bool:
    """Three differences are meant."""
    # Unknown tags are data to us, also those that Java knows in another version.
    if theirs.startswith("!RuntimeException: Tag ") and theirs.endswith(tuple("0123456789")):
        return True
    # Java reads tags out of order but cannot write them; nor can it write the tag number that stands for none.
    if "Invalid raw tag field list" in theirs or "as an undefined tag" in theirs:
        return not exact or "as an undefined tag" in theirs
    # Broken UTF-8 becomes replacement characters, in Java fewer of them.
    return not exact and "efbfbd" in ours and "efbfbd" in theirs
