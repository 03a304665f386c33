"""Decides what a build of the marts has to rebuild: from which checkpoint on, and why."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from kafkascope.lake.active import active_files
from kafkascope.lake.home import Lake
from kafkascope.lake.write.commit import find_table
from kafkascope.lake.write.replace import build_of
from kafkascope.pipeline.mart.base.sources import OpenLake
from kafkascope.pipeline.mart.increments.changes import Account, account_of, change_between
from kafkascope.pipeline.mart.increments.checkpoints import BEGINNING, NO_CHANGE, proposed, start_of, thinned
from kafkascope.pipeline.mart.increments.manifest import Manifest, read_manifest, rules_digest
from kafkascope.pipeline.mart.increments.plan import Plan, segment_of
from kafkascope.pipeline.mart.parts import MART_PARTS, Part
from kafkascope.times import iso, microseconds_of, moment_of


@dataclass(frozen=True, slots=True)
class Course:
    """`plans` by part; none if nothing changed. `builds` are the numbers of the tables' commits before this build, by
    table; `state_build` that of the table of states."""

    run: str
    opened: OpenLake
    account: Account
    plans: Mapping[str, Plan]
    checkpoints: tuple[int, ...]
    segments: tuple[int, ...]
    builds: Mapping[str, int]
    state_build: int
    before: Mapping[int, str]
    line: str


def course_of(lake: Lake, run: str, *, rebuild: bool) -> Course:
    # Before the tables: what is committed in between shows as another build.
    manifest, state_build, reason = read_manifest(lake)
    opened = OpenLake(lake, *(part.needs for part in MART_PARTS))
    account = account_of(opened.tables, opened.names)
    first, changed = NO_CHANGE, frozenset(opened.tables)
    if rebuild:
        manifest, reason = None, "as requested"
    elif manifest is not None and manifest.rules != rules_digest():
        manifest, reason = None, "the rules have changed"
    if manifest is not None:
        change = change_between(lake, manifest.account, opened.tables, account)
        if change.reason is None:
            first, changed = change.first, change.tables
        else:
            manifest, reason = None, change.reason
    builds = {name: _build(lake, name) for part in MART_PARTS for name in part.tables}
    intact = {part.name: manifest is not None and _is_intact(manifest, part, builds) for part in MART_PARTS}
    checkpoints = manifest.checkpoints if manifest is not None else ()
    segments = manifest.segments if manifest is not None else ()
    before = manifest.before if manifest is not None else {}
    numbers = {name: build or 0 for name, build in builds.items()}
    if not changed and all(intact.values()):
        return Course(
            run,
            opened,
            account,
            {},
            checkpoints,
            segments,
            numbers,
            state_build,
            before,
            "marts as they were: nothing has changed",
        )
    known = checkpoints
    since = start_of(known, first, segments) if manifest is not None else BEGINNING
    checkpoints = tuple(thinned({*known, *(at for at in _proposed(opened) if at > since)}))
    plans = {}
    for part in MART_PARTS:
        if part.alone and intact[part.name] and not changed & part.needs.keys():
            plans[part.name] = Plan(part.name, NO_CHANGE, (), run)
            continue
        has = manifest.states.get(part.name, ()) if manifest is not None and intact[part.name] and part.goes_on else ()
        start = start_of((at for at in has if at in known), min(first, since), ())
        earlier = tuple(at for at in checkpoints if at <= start and at in has)
        plans[part.name] = Plan(part.name, start, tuple(at for at in checkpoints if at > start), run, earlier)
    starts = tuple(sorted({*(at for at in segments if at < since), since, *(at for at in checkpoints if at > since)}))
    line = _line(since, reason, intact)
    return Course(run, opened, account, plans, checkpoints, starts, numbers, state_build, before, line)


def _line(since: int, reason: str, intact: Mapping[str, bool]) -> str:
    if reason:
        return f"marts made from the beginning ({reason})"
    broken = [name for name, is_intact in intact.items() if not is_intact]
    at = moment_of(since)
    line = f"marts made from {iso(at, 'seconds') if since and at is not None else 'the beginning'} on"
    return f"{line}; from the beginning: {', '.join(broken)} (not of the last build)" if broken else line


def _proposed(opened: OpenLake) -> list[int]:
    """By the times of exchanges. A recording of the future moves no checkpoint there."""
    times = opened.tables["exchanges"].times.values()
    first = min((time.first for time in times if time.first is not None), default=None)
    last = max((time.last for time in times if time.last is not None), default=None)
    if first is None or last is None:
        return []
    return proposed(first, min(last, microseconds_of(datetime.now(UTC))))


def _build(lake: Lake, name: str) -> int | None:
    """The number of a mart's commit; None if it has files that no such build wrote."""
    table = find_table(lake, name)
    if table is None:
        return 0
    return build_of(table) if all(segment_of(file) is not None for file in active_files(table)) else None


def _is_intact(manifest: Manifest, part: Part, builds: Mapping[str, int | None]) -> bool:
    return all(builds[name] is not None and builds[name] == manifest.builds.get(name) for name in part.tables)
