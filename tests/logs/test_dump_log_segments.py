"""Everything that `log` reads is what Kafka's own DumpLogSegments prints, field by field."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkascope.codec.records.record_data import Record, encode_records, new_batch
from kafkascope.logs.directories import LogFile, list_files
from kafkascope.logs.files import INDEXES, OF_BATCHES, PRODUCER_SNAPSHOT, SEGMENT
from kafkascope.logs.reader import LogReader, RecordEvent
from kafkascope.logs.typed_records import message_names, topic_of_type
from lab.program import Program, java
from tests.logs.dump import Line, hidden_paths, lines_of, parsed
from tests.logs.remote_log import java_text, without_custom_metadata

pytestmark = pytest.mark.heavy

_DECODERS = {
    "__cluster_metadata": "--cluster-metadata-decoder",
    "__consumer_offsets": "--offsets-decoder",
    "__share_group_state": "--share-group-state-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__remote_log_metadata": "--remote-log-metadata-decoder",
}
_PREAMBLE = ("Log starting offset", "Snapshot end offset", "KRaft bootstrap")
_TOPOLOGY = ".data.subtopologies"
_HIDDEN = {
    *(".data.salt", ".data.storedKey", ".data.serverKey"),
    f"{_TOPOLOGY}.repartitionSourceTopics.topicConfigs.value",
    f"{_TOPOLOGY}.stateChangelogTopics.topicConfigs.value",
}


class Judge:
    """DumpLogSegments in one JVM."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._asked = 0

    def lines(self, paths: list[str], topic: str | None = None) -> dict[str, list[str]]:
        """By path; all are of one topic, or of users' topics."""
        decoder = _DECODERS.get(topic or "", "--print-data-log")
        by_path: dict[str, list[str]] = {}
        for line in self.printed("org.apache.kafka.tools.DumpLogSegments", "--files", ",".join(paths), decoder):
            if line.startswith("Dumping "):
                lines = by_path.setdefault(line.removeprefix("Dumping "), [])
            elif not line.startswith(_PREAMBLE):
                lines.append(re.sub(r" isValid: \w+ crc: \d+", "", line) if line.startswith("|") else line)
        return by_path

    def printed(self, tool: str, *arguments: str) -> list[str]:
        self._program.process.tell("\t".join([tool, *arguments]))
        number = self._asked
        self._asked += 1
        event = self._program.wait_for("a dump", lambda e: e["event"] == "printed" and e["number"] == number)
        assert event["status"] == 0
        lines: list[str] = event["lines"]
        return lines


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    program = java("Tools", "dump", tmp_path_factory.mktemp("dump"), {}, heap="400m")
    program.wait_for_event("started")
    yield Judge(program)
    program.close()


def compared(theirs: list[str], path: str, topic: str | None) -> tuple[int, set[str]]:
    """How many lines were equal, and where ours hides something."""
    ours: list[Line] = list(lines_of(path))
    hidden = set()
    for mine, line in zip(ours, theirs, strict=True):
        other = parsed(line, topic)
        assert mine[0] == other[0]
        hidden |= hidden_paths(mine[1], other[1]) | hidden_paths(mine[2], other[2])
    return len(ours), hidden


def decoded_topic(file: LogFile) -> str | None:
    """The topic, if the tool has a decoder for it."""
    return file.topic if file.topic in _DECODERS else None


def _files(disks: Path, *kinds: str) -> list[LogFile]:
    return [file for file in list_files(str(disks)) if file.kind in kinds and file.left_alone is None]


def test_reads_every_batch_and_record_as_kafka_does(judge: Judge, disks: Path) -> None:
    # Each topic of one node, and what differs on the others: the quorum's log, and the killed node's groups.
    files = [
        file for file in _files(disks, *OF_BATCHES)
        if file.broker == 1 or file.topic in ("__cluster_metadata", "__consumer_offsets", "compacted", "packed")
    ]  # fmt: skip
    hidden: set[str] = set()
    lines = 0
    for decoded in {decoded_topic(file) for file in files}:
        group = [file for file in files if decoded_topic(file) == decoded]
        theirs = judge.lines([file.path for file in group], decoded)
        for file in group:
            number, more = compared(theirs[file.path], file.path, file.topic)
            lines += number
            hidden |= more
    assert lines > 3_000
    assert hidden == _HIDDEN


def test_reads_the_metadata_of_tiered_storage_as_kafka_does(judge: Judge, tmp_path: Path) -> None:
    """Every kind of record in every state, written by Kafka's own class. The tool shows some fields of them."""
    path = tmp_path / "__remote_log_metadata-0" / f"{0:020}.log"
    path.parent.mkdir()
    judge.printed("RemoteLog", str(path))
    batch, *theirs = judge.lines([str(path)], path.parent.name.removesuffix("-0"))[str(path)]
    events = list(LogReader((str(path),)).events())
    assert next(lines_of(str(path)))[0] == batch
    ours = [event for event in events if isinstance(event, RecordEvent)]
    assert {event.typed.type for event in ours if event.typed} == {
        name for name in message_names() if topic_of_type(name) == "__remote_log_metadata"
    }
    for event, line in zip(ours, theirs, strict=True):
        assert event.typed is not None and event.typed.type is not None and event.typed.value is not None
        assert java_text(event.typed.type, event.typed.value) == without_custom_metadata(line.partition("payload: ")[2])
    assert any("Optional[" in line for line in theirs)


def test_reads_every_index_and_producer_as_kafka_does(judge: Judge, disks: Path) -> None:
    files = _files(disks, *INDEXES, PRODUCER_SNAPSHOT)
    # The tool fails at the index of an empty segment.
    empty = {file.path.removesuffix(".log") for file in _files(disks, SEGMENT) if not file.size}
    files = [file for file in files if file.path.rpartition(".")[0] not in empty]
    dumped = judge.lines([file.path for file in files])
    lines = 0
    for file in files:
        # Of an index that a broker holds open, and of which nothing is used yet, the tool prints one entry of zeros.
        unused = (f"offset: {file.base_offset} position: 0", f"timestamp: 0 offset: {file.base_offset}")
        theirs = [line for line in dumped[file.path] if not line.endswith("is empty.") and line not in unused]
        assert [line for line, _, _ in lines_of(file.path)] == theirs
        lines += len(theirs)
    assert lines > 100


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4"])
@pytest.mark.parametrize("magic", [0, 1])
def test_reads_message_sets_as_kafka_does(judge: Judge, tmp_path: Path, magic: int, compression: str) -> None:
    stamp = -1 if magic == 0 else 1_767_268_800_000
    records = [
        Record(offset, stamp, b"key", None if offset == 41 else b"value %d" % offset) for offset in range(40, 44)
    ]
    whole = [[record] for record in records] if compression == "none" else [records]
    data = encode_records([new_batch(part, magic=magic, compression=compression) for part in whole])
    path = tmp_path / "old-0" / f"{40:020}.log"
    path.parent.mkdir()
    path.write_bytes(data)
    theirs = judge.lines([str(path)])[str(path)]
    assert list(lines_of(str(path))) == [parsed(line, "old") for line in theirs]
