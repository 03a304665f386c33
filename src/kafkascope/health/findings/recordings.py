"""Collects signs of lost, encrypted and unreadable bytes from the rows of `captures` and `quarantine`. Files that
follow each other are one recording, so the number of files that it was split into doesn't matter."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from kafkascope.health.findings.episodes import MERGE_US, Signs

Row = Mapping[str, Any]

_A_RECORDING = "a recording"
# Values of `captures.kind`. An observer's own calls aren't a recording of other clients' traffic. A file of plain
# frames that has grown has rows that each count all of its frames; rows of other files count what is new.
OBSERVED, _PLAIN = "observe", "frames"
# Files of log directories: the mart `log_health` is about them.
_OF_DISKS = frozenset({"segment", "snapshot", "producer snapshot"})


@dataclass(frozen=True, slots=True, order=True)
class _RecordingFile:
    first_at: int
    last_at: int
    uri: str
    kind: str | None
    frames: int
    tcp_bytes: int
    tls_bytes: int
    lost_bytes: int


@dataclass
class Recording:
    """Files that overlap, or that follow each other within the gap that merges two findings."""

    files: list[_RecordingFile] = field(default_factory=list)
    last_at: int = 0
    counted: bool = False

    @cached_property
    def first_at(self) -> dict[str, int]:
        """The first time of each file; 0 if it has none."""
        began: dict[str, int] = {}
        for file in self.files:
            began.setdefault(file.uri, file.first_at)
        return began

    @cached_property
    def began_at(self) -> int:
        return min(filter(None, self.first_at.values()), default=0)

    @cached_property
    def subject(self) -> str:
        first = next(iter(self.first_at), _A_RECORDING)
        others = len(self.first_at) - 1
        return f"{first} and {others} more" if others > 0 else first

    @property
    def frames(self) -> int:
        frames: Counter[tuple[str, bool]] = Counter()
        for file in self.files:
            key = (file.uri, file.kind == _PLAIN)
            frames[key] = max(frames[key], file.frames) if file.kind == _PLAIN else frames[key] + file.frames
        return frames.total()


@dataclass(slots=True)
class Recordings:
    """Maps file names to recordings, and knows when the last recording ends. `of_disks` are files of log directories
    with rows in quarantine."""

    recordings: list[Recording]
    by_uri: dict[str, list[Recording]]
    until: int | None
    of_disks: set[str]

    def end_of(self, from_at: int, to_at: int) -> int:
        """The end of an interval, limited to the end of the recordings that it overlaps."""
        ends = [part.last_at for part in self.recordings if part.began_at <= to_at and part.last_at >= from_at]
        return max(from_at, min(to_at, max(ends, default=to_at)))

    def holding(self, uri: str, at: int | None) -> Recording:
        """The recording that contains a place in a file; a file that has grown can be in several."""
        candidates = self.by_uri.get(uri) or self.recordings[:1] or [Recording()]
        return next((recording for recording in candidates if at is None or at <= recording.last_at), candidates[-1])


def captures(rows: Iterable[Row], signs: Signs) -> Recordings:
    files: dict[bool, list[_RecordingFile]] = {True: [], False: []}
    timeless: list[_RecordingFile] = []
    of_disks: set[str] = set()
    for row in rows:
        if row["kind"] in _OF_DISKS:
            if row["quarantined"]:
                of_disks.add(row["capture_uri"])
            continue
        file = _file(row)
        (files[file.kind == OBSERVED] if file.first_at else timeless).append(file)
    recordings = _recordings(files[False])
    if timeless:
        # A file that couldn't be read at all has no time: count it for the earliest recording.
        recordings = recordings or [Recording()]
        recordings[0].files += timeless
    for recording in recordings:
        _tls_and_losses(recording, signs)
    recordings += _recordings(files[True])
    by_uri: dict[str, list[Recording]] = {}
    for recording in recordings:
        for uri in recording.first_at:
            by_uri.setdefault(uri, []).append(recording)
    return Recordings(
        recordings, by_uri, max((recording.last_at for recording in recordings), default=0) or None, of_disks
    )


def _file(row: Row) -> _RecordingFile:
    first_at = row["first_at"] or 0
    counts = (row[name] or 0 for name in ("frames", "tcp_bytes", "tls_bytes", "lost_bytes"))
    return _RecordingFile(
        first_at, max(first_at, row["last_at"] or 0), row["capture_uri"] or _A_RECORDING, row["kind"], *counts
    )


def _recordings(files: list[_RecordingFile]) -> list[Recording]:
    recordings: list[Recording] = []
    for file in sorted(files, key=lambda file: (file.first_at, file.uri)):
        if not recordings or file.first_at - recordings[-1].last_at > MERGE_US:
            recordings.append(Recording())
        recordings[-1].files.append(file)
        recordings[-1].last_at = max(recordings[-1].last_at, file.last_at)
    return recordings


def _tls_and_losses(recording: Recording, signs: Signs) -> None:
    for rule, column in (("recording_tls", "tls_bytes"), ("recording_lost", "lost_bytes")):
        concerned = [file for file in recording.files if getattr(file, column)]
        for file in concerned:
            episode = signs.of(rule, recording.subject, concerned[0].first_at, file.last_at)
            episode.add(column, getattr(file, column))
            episode.name("recordings", file.uri, getattr(file, column))
        if concerned:
            episode.add("tcp_bytes", sum(file.tcp_bytes for file in recording.files))


def quarantine(rows: Iterable[Row], recorded: Recordings, signs: Signs) -> None:
    for row in rows:
        uri, at = row["capture_uri"] or _A_RECORDING, row["recorded_at"]
        if uri in recorded.of_disks:
            continue
        recording = recorded.holding(uri, at)
        at = at or recording.first_at.get(uri) or recording.began_at
        episode = signs.of("recording_unreadable", recording.subject, at)
        episode.add("places")
        episode.add("undecoded", row["kind"] == "undecoded")
        episode.name("kinds", row["message"] or row["kind"])
        episode.name("recordings", uri)
        episode.prove(at, row["exchange_id"])
        if not recording.counted:
            recording.counted = True
            episode.add("frames", recording.frames)
