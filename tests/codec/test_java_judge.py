"""Kafka's own Java codec is the judge: for every (message, version) of a release, our bytes are its bytes and our JSON
of its bytes is its JSON."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from kafkascope.codec.json_form import to_json
from kafkascope.codec.message import decode, encode
from kafkascope.codec.result import UNKNOWN_TAGS
from kafkascope.schema.catalog import index, message
from kafkascope.schema.layouts.layout import choose_block, layout
from tests.judge.java import NOT_ASKED, judge
from tests.support.values import random_value

pytestmark = pytest.mark.heavy

CASES_A_PAIR = 20
# Whole releases, then releases of which only those layouts count that no whole release has.
WHOLE = ("4.3.1", "3.9.2", "4.4.0")
# The data messages that kafka-clients carries itself.
CLIENT_DATA = frozenset(
    "AbortedTxn ConsumerProtocolAssignment ConsumerProtocolSubscription ControlRecordTypeSchema DefaultPrincipalData"
    " EndTxnMarker KRaftVersionRecord LeaderChangeMessage SnapshotFooterRecord SnapshotHeaderRecord"
    " VotersRecord".split()
)
CLIENT_KINDS = ("request", "response", "header")
ONLY_THEIR_OWN = ("2.7.2", "2.8.2", "3.2.3", "3.5.2", "3.6.2", "3.7.2", "4.0.2")


def pairs_of(version_name: str) -> list[tuple[str, int]]:
    """(message, version) that the release has and, for the older ones, lays out as no other does."""
    release = version_name.rpartition(".")[0]
    pairs = []
    for name, entry in index().items():
        known = message(name)
        # Of 4.4 only the client jar is published.
        if version_name == "4.4.0" and entry.kind not in CLIENT_KINDS and name not in CLIENT_DATA:
            continue
        versions = known.versions_in(release)
        for version in known.all_versions() if versions else []:
            if versions is None or version not in versions:
                continue
            # A version that no whole release has, or that this one lays out otherwise.
            own = choose_block(known, version, release).releases is not None or not any(
                version in (known.versions_in(whole.rpartition(".")[0]) or ()) for whole in WHOLE
            )
            if version_name in WHOLE or own:
                pairs.append((name, version))
    return pairs


def without_unknown_tags(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_unknown_tags(item) for name, item in value.items() if name != UNKNOWN_TAGS}
    if isinstance(value, list):
        return [without_unknown_tags(item) for item in value]
    return value


def has_unknown_tags(value: Any) -> bool:
    return bool(without_unknown_tags(value) != value)


def excused(version_name: str, verdict: str) -> bool:
    """What a release's converters cannot do is judged from bytes alone."""
    if version_name in ("3.5.2", "3.6.2", "3.7.2"):
        # Their coordinator records were generated without JSON converters; the class itself is there.
        return verdict == "!absent"
    # These read binary only from binary nodes, and parsed JSON text has none.
    return version_name in ("2.8.2", "3.2.3") and verdict.endswith("expected Base64-encoded binary data.")


@pytest.mark.parametrize("version_name", WHOLE + ONLY_THEIR_OWN)
def test_our_bytes_and_json_are_javas(version_name: str, record_property: Callable[[str, object], None]) -> None:
    release = version_name.rpartition(".")[0]
    pairs = pairs_of(version_name)
    cases: list[tuple[str, int, str, str]] = []
    values: list[tuple[str, int, dict[str, Any]]] = []
    for name, version in pairs:
        known = layout(name, version, release)
        for case in range(CASES_A_PAIR):
            value = random_value(known, case)
            data = encode(name, version, value, release)
            # Java's JSON has no unknown tags, so those cases are judged from bytes alone.
            text = NOT_ASKED if has_unknown_tags(value) else json.dumps(to_json(name, version, value, release))
            cases.append((known.message.name_in(release), version, text, data.hex()))
            values.append((name, version, value))
    verdicts = judge(version_name, cases)
    wrong: list[str] = []
    bytes_alone = 0
    for (name, version, value), case_, verdict in zip(values, cases, verdicts, strict=True):
        where = f"{name} v{version} in {version_name}"
        bytes_alone += excused(version_name, verdict.from_json) or excused(version_name, verdict.json)
        if verdict.from_json not in (NOT_ASKED, case_[3]) and not excused(version_name, verdict.from_json):
            wrong.append(f"{where}: Java writes {verdict.from_json[:200]}, we {case_[3][:200]}")
        if verdict.rewritten != case_[3]:
            wrong.append(f"{where}: Java rewrites as {verdict.rewritten[:200]}, ours is {case_[3][:200]}")
        decoded = decode(name, version, bytes.fromhex(case_[3]), release)
        assert decoded.exact and decoded.value == value, f"{where}: decode(encode(value)) is not value"
        ours = without_unknown_tags(to_json(name, version, decoded.value, release, records="size"))
        if excused(version_name, verdict.json):
            continue
        if verdict.json.startswith("!") or json.loads(verdict.json) != ours:
            wrong.append(f"{where}: Java's JSON {verdict.json[:300]}, ours {json.dumps(ours)[:300]}")
    equal = f"{len(cases)} values, {len(wrong)} differ from Java"
    equal += f", {bytes_alone} judged from bytes alone" if bytes_alone else ""
    record_property("measured", f"judge {version_name}: {len(pairs)} (message, version) pairs, {equal}")
    assert not wrong, "\n".join(wrong[:10])
    assert len(cases) == CASES_A_PAIR * len(pairs) > 0
