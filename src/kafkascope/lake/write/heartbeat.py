"""Renews a small file while an ingest runs, so that `vacuum` leaves its files alone. The last commit lands only if the
ingest wasn't taken for dead meanwhile."""

import getpass
import json
import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from kafkascope.errors import InputError
from kafkascope.lake.file_names import pending
from kafkascope.lake.home import Lake
from kafkascope.lake.inside import inside
from kafkascope.lake.place import Place
from kafkascope.lake.tables import table_named
from kafkascope.lake.write.commit import LANDING, Change, commit, find_table, transaction_version
from kafkascope.lake.write.files import NewFile

INGESTS = "_ingests"
# How often the driver renews it, and when an ingest counts as dead: a paused virtual machine must not.
BEAT_SECONDS = 30
SILENCE = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Running:
    """`token` distinguishes two runs of one ingest. `given_up` is how often `vacuum` had removed the ingest when this
    run began, as the version of its transaction in `captures`."""

    ingest_id: str
    token: str
    user: str
    host: str
    pid: int
    started: datetime
    beat: datetime
    given_up: int = 0

    def alive(self, now: datetime) -> bool:
        return now - self.beat < SILENCE

    def place(self, lake: Lake) -> Place:
        return inside(lake.place, f"{INGESTS}/{self.ingest_id}-{self.token}.json")


def begin(lake: Lake, ingest_id: str) -> Running:
    """Call it before first reading the tables or writing a file."""
    if not ingest_id.isalnum():
        raise AssertionError(f"{ingest_id!r} is used in file names: only letters and digits are allowed")
    now = datetime.now(UTC)
    run = Running(ingest_id, uuid4().hex[:12], _user(), socket.gethostname(), os.getpid(), now, now)
    try:
        _write(lake, run)
        # After the first heartbeat: what `vacuum` removes from here on is noticed at the last commit.
        captures = find_table(lake, "captures")
        version = transaction_version(captures, ingest_id) if captures is not None else None
        return replace(run, given_up=version if version is not None and version % 2 == 0 else 0)
    except BaseException:
        # Ctrl-C, before the caller can remove it.
        end(lake, run)
        raise


def beat(lake: Lake, run: Running) -> Running:
    """Renews the heartbeat. An ingest that was taken for dead learns of it here."""
    if not run.place(lake).exists():
        raise InputError(
            f"{lake.uri}: ingest {run.ingest_id} was silent for too long, so `lake vacuum` removed it; run it again"
        )
    renewed = replace(run, beat=datetime.now(UTC))
    _write(lake, renewed)
    return renewed


def seal(
    lake: Lake, run: Running, files: Iterable[NewFile], turn: int | None = None, change: Change | None = None
) -> bool:
    """Commits `captures`, which makes the ingest visible. Returns False if it was visible already. Raises `Overtaken`
    if `turn` has changed. `change` is part of the same commit."""
    return commit(lake, table_named("captures"), files, run.ingest_id, expected=run.given_up, turn=turn, change=change)


def turn_of(lake: Lake) -> int:
    """How many ingests have landed; call it before reading what they left."""
    captures = find_table(lake, "captures")
    return (transaction_version(captures, LANDING) or 0) if captures is not None else 0


def end(lake: Lake, run: Running) -> None:
    run.place(lake).delete()


def running_ingests(lake: Lake) -> list[Running]:
    """All heartbeats, including those of dead ingests; check `alive`."""
    runs = []
    for info in inside(lake.place, INGESTS).inside():
        if not info.base_name.endswith(".json"):
            continue
        try:
            runs.append(_read(inside(lake.place, f"{INGESTS}/{info.base_name}")))
        except InputError:
            # It ended between the two reads, or isn't a heartbeat: `vacuum` deletes those once they are old.
            continue
    return sorted(runs, key=lambda run: (run.started, run.ingest_id))


def running_now(lake: Lake) -> list[Running]:
    now = datetime.now(UTC)
    return [run for run in running_ingests(lake) if run.alive(now)]


def alive_ingests(lake: Lake) -> frozenset[str]:
    return frozenset(run.ingest_id for run in running_now(lake))


def alive_names(lake: Lake) -> frozenset[str]:
    """Names in files of running ingests, including those of pending rows."""
    alive = alive_ingests(lake)
    return alive | frozenset(pending(name) for name in alive)


def _write(lake: Lake, run: Running) -> None:
    content = {
        "ingest_id": run.ingest_id,
        "token": run.token,
        "user": run.user,
        "host": run.host,
        "pid": run.pid,
        "started": run.started.isoformat(),
        "beat": run.beat.isoformat(),
    }
    run.place(lake).write(json.dumps(content).encode())


def _read(place: Place) -> Running:
    """Checks that the file is named after its content: `end` deletes by name."""
    value = place.read_json()
    try:
        run = Running(
            ingest_id=str(value["ingest_id"]),
            token=str(value["token"]),
            user=str(value["user"]),
            host=str(value["host"]),
            pid=int(value["pid"]),
            started=datetime.fromisoformat(value["started"]).astimezone(UTC),
            beat=datetime.fromisoformat(value["beat"]).astimezone(UTC),
        )
        if place.path.rpartition("/")[2] != f"{run.ingest_id}-{run.token}.json":
            raise ValueError
    except (ValueError, KeyError, TypeError, OverflowError):
        raise InputError(f"{place.uri}: this isn't the heartbeat of an ingest") from None
    return run


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return str(os.getuid())
