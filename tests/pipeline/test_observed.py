"""What an observer lands is in the same tables as an ingest, exactly once, without Spark."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from kafkascope import encode_frame
from kafkascope.capture.exchanges.client_calls import ClientCall
from kafkascope.lake.file_names import PENDING
from kafkascope.lake.home import Lake, make_lake
from kafkascope.lake.read.visible_rows import dataset, visible_files
from kafkascope.lake.upkeep.retention import vacuum
from kafkascope.lake.write import heartbeat as running
from kafkascope.lake.write.heartbeat import running_ingests
from kafkascope.pipeline import observed
from kafkascope.pipeline.observed import FailedPolls, ObservationWriter, Portion
from tests.support.other_tools import arrow_rows

SOURCE = "127.0.0.1:9092"
SECOND = 1_000_000_000
NOON = 1_794_744_000 * SECOND


@pytest.fixture
def home(tmp_path: Path) -> Lake:
    return make_lake(tmp_path / "lake")


def called(at: int, api: str, version: int, request: dict[str, Any], response: dict[str, Any]) -> ClientCall:
    sent = NOON + at * SECOND
    request_frame = encode_frame(
        f"{api}Request", version, request, {"correlationId": at, "clientId": "watch"}, length=False
    )
    response_frame = encode_frame(f"{api}Response", version, response, {"correlationId": at}, length=False)
    return ClientCall("127.0.0.1:51234", SOURCE, NOON, request_frame, response_frame, sent, sent + 2_000_000)


def quorum(at: int, epoch: int = 3) -> ClientCall:
    voters = [{"replicaId": node, "logEndOffset": 100 - node} for node in (1, 2)]
    partition = {"leaderId": 1, "leaderEpoch": epoch, "highWatermark": 98, "currentVoters": voters}
    answer = {"topics": [{"topicName": "__cluster_metadata", "partitions": [partition]}]}
    return called(at, "DescribeQuorum", 2, {}, answer)


def rows(lake: Lake, name: str) -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = dataset(lake, name).to_table().to_pylist()
    return table


def test_a_call_lands_as_exchange_bodies_connection_and_capture(home: Lake) -> None:
    writer = ObservationWriter(home, SOURCE, "run", {"every": "10s"})
    writer.commit_portion(Portion([quorum(1), quorum(11)], polls=2))
    assert [row["api"] for row in rows(home, "exchanges")] == ["DescribeQuorum", "DescribeQuorum"]
    bodies = rows(home, "describe_quorum_response")
    assert {row["exchange_id"] for row in bodies} == {row["exchange_id"] for row in rows(home, "exchanges")}
    assert bodies[0]["topics"][0]["partitions"][0]["current_voters"][1]["log_end_offset"] == 98
    (connection,) = rows(home, "connections")
    assert (connection["protocol"], connection["client_address"]) == ("kafka", "127.0.0.1:51234")
    (capture,) = rows(home, "captures")
    assert (capture["kind"], capture["capture_uri"]) == ("observe", f"observe://{SOURCE}/run")
    assert (capture["exchanges"], capture["frames"], capture["lost_places"]) == (2, 4, 0)
    assert json.loads(capture["options"]) == {"every": "10s", "polls": 2, "unanswered": 0}
    assert not running_ingests(home)


def test_commits_of_a_run_are_one_recording_that_grows(home: Lake) -> None:
    writer = ObservationWriter(home, SOURCE, "run")
    for at in (1, 11):
        writer.commit_portion(Portion([quorum(at)], polls=1))
    assert {row["capture_uri"] for row in rows(home, "captures")} == {f"observe://{SOURCE}/run"}
    assert sorted(row["packet"] for row in rows(home, "exchanges")) == [0, 1]
    assert len({row["ingest_id"] for row in rows(home, "captures")}) == 2


def key(call: ClientCall) -> tuple[str, str, int]:
    return call.client_address, call.broker_address, call.opened_ns


def other(at: int) -> ClientCall:
    """A call over another connection."""
    return replace(quorum(at), client_address="127.0.0.1:51235")


def plain_rows(lake: Lake, name: str) -> list[dict[str, Any]]:
    """As a reader of Delta that isn't ours has them."""
    plain: list[dict[str, Any]] = arrow_rows(lake.table(name).uri).to_pylist()
    return plain


def sizes(connections: list[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """There is one row per connection."""
    by_client = {row["client_address"]: (row["client_bytes"], row["broker_bytes"]) for row in connections}
    assert len(by_client) == len(connections)
    return by_client


def summed(*calls: ClientCall) -> dict[str, tuple[int, int]]:
    """By the frames themselves, with their lengths."""
    sums: dict[str, tuple[int, int]] = {}
    for call in calls:
        sent, received = sums.get(call.client_address, (0, 0))
        sums[call.client_address] = sent + len(call.request) + 4, received + len(call.response or b"") + 4
    return sums


@pytest.mark.parametrize("left_open", [True, False])
def test_a_connection_has_one_row_for_every_reader_after_every_commit(home: Lake, left_open: bool) -> None:
    writer = ObservationWriter(home, SOURCE, "run")
    # The other connection is closed after the second commit; the last two have nothing of it.
    commits = [[quorum(1), other(2)], [quorum(11), other(12)], [quorum(21)], [quorum(31)]]
    seen: list[ClientCall] = []
    for number, calls in enumerate(commits):
        seen += calls
        still_open = {key(calls[0]), *([key(other(0))] if number == 0 else [])}
        last = number == len(commits) - 1 and not left_open
        writer.commit_portion(Portion(calls, polls=1, still_open=() if last else still_open))
        assert sizes(rows(home, "connections")) == sizes(plain_rows(home, "connections")) == summed(*seen)
    assert {row["first_at"].timestamp() * SECOND for row in rows(home, "connections")} == {NOON}
    # The row of a connection that has ended is final.
    going_on = {row["client_address"] for row in rows(home, "connections") if row["ingest_id"].endswith(PENDING)}
    assert going_on == ({quorum(0).client_address} if left_open else set())
    assert writer.totals.rows["connections"] == 2


def test_a_portion_without_calls_keeps_the_connections(home: Lake) -> None:
    writer = ObservationWriter(home, SOURCE, "run")
    for portion in (Portion([quorum(1)]), Portion([], [FailedPolls(NOON, 1, "gone")]), Portion([quorum(21)])):
        writer.commit_portion(portion)
        assert len(rows(home, "connections")) == len(plain_rows(home, "connections")) == 1
    assert sizes(rows(home, "connections")) == summed(quorum(1), quorum(21))


@pytest.mark.parametrize("step", ["commit", "seal", "without"])
def test_a_commit_that_is_cut_off_neither_loses_nor_doubles_a_connection(
    home: Lake, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed observer does nothing more at that step."""
    writer = ObservationWriter(home, SOURCE, "run")
    writer.commit_portion(Portion([quorum(1)]))

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(observed, step, killed)
    with pytest.raises(KeyboardInterrupt):
        writer.commit_portion(Portion([quorum(11)]))
    monkeypatch.undo()
    landed = [quorum(1), quorum(11)] if step == "without" else [quorum(1)]
    assert sizes(rows(home, "connections")) == summed(*landed)
    vacuum(home)
    assert sizes(plain_rows(home, "connections")) == sizes(rows(home, "connections")) == summed(*landed)


def test_an_observer_lands_beside_another(home: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another run lands between its look at the lake and its last commit."""
    first, second = ObservationWriter(home, SOURCE, "one"), ObservationWriter(home, SOURCE, "two")
    first.commit_portion(Portion([quorum(1)]))
    waiting = iter([Portion([other(2)])])

    def turn_of(lake: Lake) -> int:
        turn = running.turn_of(lake)
        for portion in waiting:
            second.commit_portion(portion)
        return turn

    monkeypatch.setattr(observed, "turn_of", turn_of)
    first.commit_portion(Portion([quorum(11)]))
    assert sizes(rows(home, "connections")) == summed(quorum(1), other(2), quorum(11))


def test_a_failed_poll_lands_as_a_fact_of_its_time(home: Lake) -> None:
    ObservationWriter(home, SOURCE, "run").commit_portion(
        Portion([], [FailedPolls(NOON, 3, "127.0.0.1:9092: connection refused")], polls=3)
    )
    (hole,) = rows(home, "quarantine")
    assert (hole["kind"], hole["detail"]) == ("unreachable", "127.0.0.1:9092: connection refused (3 in a row)")
    assert hole["recorded_at"].timestamp() * SECOND == NOON
    (capture,) = rows(home, "captures")
    assert (capture["lost_places"], capture["quarantined"], capture["exchanges"]) == (3, 1, 0)


def test_nothing_asked_leaves_nothing(home: Lake) -> None:
    ObservationWriter(home, SOURCE, "run").commit_portion(Portion([]))
    assert home.tables() == []


def test_two_runs_do_not_take_each_other_for_the_same(home: Lake) -> None:
    for run in ("one", "two"):
        ObservationWriter(home, SOURCE, run).commit_portion(Portion([quorum(1)], polls=1))
    assert len({row["ingest_id"] for row in rows(home, "exchanges")}) == 2


def test_files_stay_few_however_long_it_runs(home: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observed, "COMPACT_AFTER", 10)
    writer = ObservationWriter(home, SOURCE, "run")
    for at in range(20):
        writer.commit_portion(Portion([quorum(at)], polls=1))
    assert len(rows(home, "exchanges")) == 20
    assert len(visible_files(home, "exchanges")) == 1
    assert len(DeltaTable(home.table("connections").uri).file_uris()) == 1


def test_secrets_of_configs_and_authentication_are_not_stored(home: Lake) -> None:
    secret = b"hunter2-of-the-observer"
    sasl = called(1, "SaslAuthenticate", 2, {"authBytes": b"\0alice\0" + secret}, {"authBytes": secret})
    ObservationWriter(home, SOURCE, "run").commit_portion(Portion([sasl], polls=1))
    assert [row["api"] for row in rows(home, "exchanges")] == ["SaslAuthenticate"]
    stored = [repr(rows(home, name)) for name in home.tables()]
    assert not any("hunter2" in text for text in stored)


def test_a_commit_that_fails_shows_nothing_and_leaves_no_sign(home: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bool:
        raise OSError("no space left on device")

    monkeypatch.setattr(observed, "seal", refuse)
    with pytest.raises(OSError, match="no space"):
        ObservationWriter(home, SOURCE, "run").commit_portion(Portion([quorum(1)], polls=1))
    assert rows(home, "exchanges") == []
    assert not running_ingests(home)
    monkeypatch.undo()
    assert vacuum(home).ingests
    ObservationWriter(home, SOURCE, "another").commit_portion(Portion([quorum(1)], polls=1))
    assert len(rows(home, "exchanges")) == 1


def test_the_writer_loads_no_spark() -> None:
    process = subprocess.run(
        [sys.executable, "-c", "import sys, kafkascope.pipeline.observed; print('pyspark' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout.strip() == "False"
