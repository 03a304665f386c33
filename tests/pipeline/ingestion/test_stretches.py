"""A connection that several tasks read: the rows of every table are those of one task, whatever is in the recording."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kafkascope.capture.resume.stretch import ALL_PACKETS, Position, stretches
from kafkascope.lake.home import open_lake
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.pipeline.ingestion import plan
from kafkascope.pipeline.ingestion.division import Division, divided
from kafkascope.pipeline.ingestion.ingest import Options, ingest
from kafkascope.pipeline.ingestion.inputs import InputFile
from kafkascope.pipeline.ingestion.survey import FileSurvey, FlowSample
from tests.pipeline.ingestion.without_spark import cut, without_spark
from tests.pipeline.test_ingest import capture
from tests.support.flows import endpoints

NOBODY: Any = None
SEED = 19
# One bucket of connections has four tasks, the other three.
COUNTS = (4, 3)


def cut_everywhere(seed: int, surveys: Sequence[FileSurvey], _: int) -> Division:
    """Cuts at any byte of any file, and once after the end of all files."""
    random = Random(seed)

    def bounds(count: int) -> list[Position]:
        files = [random.randrange(len(surveys)) for _ in range(count - 2)]
        inside = [Position(file, random.randrange(surveys[file].bytes)) for file in files]
        return [*sorted(inside), Position(len(surveys) - 1, 1 << 40)]

    return Division({}, tuple(tuple(stretches(bounds(count))) for count in COUNTS))


def in_one_piece(_: Sequence[FileSurvey], __: int) -> Division:
    return Division({}, ((ALL_PACKETS,), (ALL_PACKETS,)))


def troubled(path: Path) -> None:
    """Of fifty packets one is lost, one comes twice and one too late; and one client turns to TLS in mid-stream."""
    data, random = path.read_bytes(), Random(SEED)
    packets, at = [], 24
    while at < len(data):
        end = at + 16 + int.from_bytes(data[at + 8 : at + 12], "little")
        packets.append(data[at:end])
        at = end
    turned = next(packet[16:][26:38] for packet in packets[len(packets) // 2 :] if len(packet) > 200)
    out: list[bytes] = []
    late: list[bytes] = []
    for number, packet in enumerate(packets):
        if number > len(packets) // 2 and turned in packet[:64] and len(packet) > 200:
            packet = packet[:-100] + (b"\x17\x03\x03\x00\x5f" + random.randbytes(95))
        chance = random.random()
        if chance < 0.02:
            late.append(packet)
        elif chance > 0.04:
            out += [packet, *late, *([packet] if chance < 0.06 else ())]
            late = []
    path.write_bytes(data[:24] + b"".join(out + late))


def tables(lake: Path) -> dict[str, list[str]]:
    """All rows of all tables, as text. Only the moment of the ingest may differ."""
    home = open_lake(str(lake))
    by_table = {}
    for name in home.tables():
        rows = dataset(home, name).to_table().to_pylist()
        by_table[name] = sorted(
            json.dumps({key: repr(value) for key, value in row.items() if key != "ingested_at"}) for row in rows
        )
    return {name: rows for name, rows in by_table.items() if rows}


def compare(
    folder: Path, steps: Sequence[Sequence[Path]], options: Options, put: Callable[[Any, str, Any], None]
) -> None:
    """`steps` are the files of one ingest after the other."""
    without_spark(put)
    results = []
    for number, divide in enumerate((in_one_piece, partial(cut_everywhere, SEED))):
        put(plan, "divided", divide)
        lake = folder / f"lake-{number}"
        for files in steps:
            ingest(NOBODY, files, lake, options)
        results.append(tables(lake))
    whole, in_stretches = results
    assert whole.keys() == in_stretches.keys() and len(whole["exchanges"]) > 100
    for name, rows in whole.items():
        assert in_stretches[name] == rows, name


@pytest.mark.parametrize("name", ["clients", "quorum", "share", "streams"])
def test_stretches_have_the_rows_of_one_task(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Envelopes and SASL among them."""
    compare(tmp_path, [[capture(name, tmp_path)]], Options(plan="buckets"), monkeypatch.setattr)


@pytest.mark.parametrize("way", ["buckets", "shuffle"])
def test_losses_and_repetitions_change_nothing(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = capture("clients", tmp_path)
    troubled(path)
    compare(tmp_path, [[path]], Options(plan=way), monkeypatch.setattr)


@pytest.mark.parametrize("way", ["buckets", "shuffle"])
def test_what_earlier_ingests_left_is_resumed_in_stretches(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = cut(capture("share", tmp_path), [300, 500, 700, 900])
    compare(tmp_path, [parts[:1], parts[1:3], parts[3:]], Options(plan=way), monkeypatch.setattr)


def survey(number: int, size: int, costs: dict[int, int], **known: Any) -> FileSurvey:
    """The walk is 0.28 of the work."""
    flows = tuple(FlowSample(endpoints(client), 100 * cost, 56 * cost) for client, cost in costs.items())
    return FileSurvey(InputFile(f"{number}.pcap", size, ""), "capture", bytes=size, flows=flows, **known)


@pytest.mark.parametrize("part", [0.1, 0.5, 1.0])
def test_one_connection_is_cut_where_each_task_takes_as_long(part: float) -> None:
    """`part` of what its messages cost are bytes."""
    file = replace(survey(0, 1_000_000, {}), flows=(FlowSample(endpoints(1), 100, int(100 * part)),))
    (cut,) = divided([file], 3).stretches
    bounds = [0, *(stretch.begin.offset for stretch in cut[1:]), 1_000_000]
    walk = part / 2
    times = [walk * begin + (end - begin) for begin, end in pairwise(bounds)]
    assert len(cut) == 3 and max(times) - min(times) < 10
    assert max(times) == pytest.approx(1_000_000 * walk / (1 - (1 - walk) ** 3), rel=1e-3)


def test_a_connection_is_cut_in_the_files_that_have_it_after_what_was_read() -> None:
    files = [
        survey(0, 1_000, {1: 1, 2: 99}), survey(1, 100_000, {1: 100}, read_bytes=50_000), survey(2, 1_000, {2: 1})
    ]  # fmt: skip
    ((_, second),) = divided(files, 2).stretches
    assert second.begin.file == 1 and 75_000 < second.begin.offset < 85_000


@pytest.mark.parametrize(
    ("costs", "tasks", "expected"),
    [
        ([50, 50], 2, [1, 1]),
        ([60, 40], 2, [1, 1]),
        ([90, 5, 5], 2, [2]),
        ([100], 1, [1]),
        ([100], 4, [4]),
        ([40, 20, 20, 20], 4, [2, 1, 1]),
        ([100], 64, [6, *[1] * 58]),
        ([1] * 64, 64, [1] * 64),
        ([], 3, [1, 1, 1]),
        ([0, 0], 2, [1, 1]),
    ],
)
def test_a_bucket_has_more_tasks_only_if_that_helps(costs: list[int], tasks: int, expected: list[int]) -> None:
    division = divided([survey(0, 1_000, dict(enumerate(costs)))], tasks)
    assert sorted((len(each) for each in division.stretches), reverse=True) == expected
    assert sum(expected) == tasks
