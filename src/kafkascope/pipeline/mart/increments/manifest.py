"""Reads and writes what the last build of the marts left: its account of the lake, the checkpoints, and the number that
each table's commit carries. It comes from a lake, so it is untrusted input: what no build can have written counts as
missing."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow as pa

import kafkascope
from kafkascope.lake.active import active_files
from kafkascope.lake.home import Lake
from kafkascope.lake.marts import KEPT, MART_STATE
from kafkascope.lake.place import filesystem_errors
from kafkascope.lake.read.visible_rows import rows_of
from kafkascope.lake.write.commit import find_table
from kafkascope.lake.write.files import Files, NewFile
from kafkascope.lake.write.replace import build_of
from kafkascope.pipeline.mart.increments.changes import Account, Pending
from kafkascope.pipeline.mart.increments.checkpoints import MINUTE_US
from kafkascope.pipeline.mart.increments.plan import state_of

MANIFEST = "manifest"
# Rules whose change changes rows.
_ROOMS = ("health", "pipeline/mart", "lake/marts.py", "schema/catalog.py")
_MOST_TIMES = 10_000
_FAR = 1 << 60


@dataclass(frozen=True, slots=True)
class Manifest:
    """`builds` are the numbers of the tables' commits, `segments` the starts of those in the lake, `states` the
    checkpoints at which a part has state, `before` digests of what was known of the time before a checkpoint."""

    rules: str
    account: Account
    checkpoints: tuple[int, ...]
    segments: tuple[int, ...]
    builds: Mapping[str, int]
    states: Mapping[str, tuple[int, ...]]
    before: Mapping[int, str]


@cache
def rules_digest() -> str:
    """Of the sources that decide what the rows of marts are."""
    package = Path(kafkascope.__file__).parent
    digest = blake2b(kafkascope.__version__.encode(), digest_size=16)
    for room in _ROOMS:
        for path in sorted((package / room).rglob("*.py")) if (package / room).is_dir() else [package / room]:
            digest.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def read_manifest(lake: Lake) -> tuple[Manifest | None, int, str]:
    """With the build that `mart_state` is of, and why there is none."""
    table = find_table(lake, MART_STATE)
    if table is None:
        return None, 0, "the first build"
    build = build_of(table)
    files = [file for file in active_files(table) if state_of(file) == (MANIFEST, 0)]
    with filesystem_errors(lake.table(MART_STATE).uri):
        rows = rows_of(lake, MART_STATE, KEPT[MART_STATE].file_schema, files).to_table() if files else None
    if rows is None or len(rows) != 1:
        return None, build, "the lake has no account of the last build"
    try:
        manifest = _parsed(json.loads(rows.column("state")[0].as_py()))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None, build, "the account of the last build can't be read"
    return manifest, build, ""


def manifest_file(lake: Lake, manifest: Manifest, run: str) -> list[NewFile]:
    files = Files(lake, "", f"mart-s0-{MANIFEST}-{run}")
    account = manifest.account
    value = {
        "rules": manifest.rules,
        "names": sorted(account.names),
        "rows": dict(account.rows),
        "pending": {table: {of: asdict(was) for of, was in rows.items()} for table, rows in account.pending.items()},
        "merged": {table: sorted(paths) for table, paths in account.merged.items()},
        "checkpoints": manifest.checkpoints,
        "segments": manifest.segments,
        "builds": dict(manifest.builds),
        "states": dict(manifest.states),
        "before": sorted(manifest.before.items()),
    }
    row = {"part": MANIFEST, "checkpoint_at": None, "key": "", "state": json.dumps(value)}
    files.add(KEPT[MART_STATE], pa.Table.from_pylist([row], schema=KEPT[MART_STATE].schema))
    return files.close()


def _parsed(value: Any) -> Manifest:
    """`ValueError` for what no build writes."""
    pending = {
        _text(table): {_text(of): Pending(_number(was["rows"]), _number(was["first"])) for of, was in rows.items()}
        for table, rows in value["pending"].items()
    }
    names = frozenset(map(_text, value["names"]))
    merged = {_text(table): frozenset(map(_text, paths)) for table, paths in value["merged"].items()}
    rows = {_text(name): _number(rows) for name, rows in value["rows"].items()}
    account = Account(names, rows, pending, merged)
    checkpoints, segments = (tuple(map(_minute, value[name])) for name in ("checkpoints", "segments"))
    _need(list(checkpoints) == sorted(set(checkpoints)) and len(segments) <= _MOST_TIMES)
    builds = {_text(name): _number(build) for name, build in value["builds"].items()}
    states = {_text(name): tuple(map(_minute, times)) for name, times in value["states"].items()}
    before = {_minute(at): _text(digest) for at, digest in value["before"]}
    return Manifest(_text(value["rules"]), account, checkpoints, segments, builds, states, before)


def _text(value: Any) -> str:
    _need(isinstance(value, str) and value.encode() is not None)
    return str(value)


def _number(value: Any) -> int:
    _need(type(value) is int and 0 <= value < 4 * _FAR)
    return int(value)


def _minute(value: Any) -> int:
    _need(_number(value) % MINUTE_US == 0 and value < _FAR)
    return int(value)


def _need(holds: bool) -> None:
    if not holds:
        raise ValueError
