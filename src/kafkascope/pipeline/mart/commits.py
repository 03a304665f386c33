"""Commits what a build of the marts made: each mart at once, and last the states with the account of the build."""

import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor

from kafkascope.lake.active import ActiveFile, active_files
from kafkascope.lake.home import Lake
from kafkascope.lake.marts import KEPT, MART_STATE, MARTS
from kafkascope.lake.write.commit import find_table
from kafkascope.lake.write.files import NewFile
from kafkascope.lake.write.replace import replace, rewrite
from kafkascope.pipeline.mart.course import Course
from kafkascope.pipeline.mart.increments.checkpoints import BEGINNING
from kafkascope.pipeline.mart.increments.kept import is_kept
from kafkascope.pipeline.mart.increments.manifest import Manifest, manifest_file, rules_digest
from kafkascope.pipeline.mart.increments.plan import Plan, state_of
from kafkascope.pipeline.mart.parts import MART_PARTS

_TABLES = {**MARTS, **KEPT}


def commit_build(
    lake: Lake, course: Course, plans: Mapping[str, Plan], files: list[NewFile], replaced: Collection[tuple[str, str]],
    before: Mapping[int, str], pool: ThreadPoolExecutor,
) -> dict[str, int]:  # fmt: skip
    """Returns the number of rows per mart. `replaced` are tables with paths of files that leave although their segment
    stays. A build that dies in between leaves marts whose number isn't that of the
    account: the next one makes them from the beginning."""
    number = time.time_ns()
    by_table: dict[str, list[NewFile]] = {name: [] for part in MART_PARTS for name in part.tables}
    by_table[MART_STATE] = []
    for file in files:
        by_table[file.table].append(file)
    builds = dict(course.builds)

    def commit(name: str, plan: Plan, *, whole: bool) -> None:
        def leaves(file: ActiveFile) -> bool:
            return whole or not is_kept(file, plan) or (name, file.path) in replaced

        if plan.idle:
            return
        if plan.since == BEGINNING:
            replace(lake, _TABLES[name], by_table[name], number)
        elif by_table[name] or _has(lake, name, leaves):
            rewrite(lake, _TABLES[name], leaves, by_table[name], (course.builds[name], number))
        else:
            return
        builds[name] = number

    tables = [(name, plans[part.name], name in part.whole) for part in MART_PARTS for name in part.tables]
    list(pool.map(lambda table: commit(table[0], table[1], whole=table[2]), tables))
    states_of = {part: (*plan.earlier, *plan.marks) for part, plan in plans.items()}
    manifest = Manifest(rules_digest(), course.account, course.checkpoints, course.segments, builds, states_of, before)
    states = [*by_table[MART_STATE], *manifest_file(lake, manifest, course.run)]
    kept = frozenset(course.checkpoints)

    def is_old(file: ActiveFile) -> bool:
        state = state_of(file)
        if state is None or state[0] not in plans:
            return True
        part, checkpoint = state
        return checkpoint not in kept or checkpoint > plans[part].since

    rewrite(lake, KEPT[MART_STATE], is_old, states, (course.state_build, number))
    return counts_of(lake)


def _has(lake: Lake, name: str, leaves: Callable[[ActiveFile], bool]) -> bool:
    table = find_table(lake, name)
    return table is None or any(leaves(file) for file in active_files(table))


def counts_of(lake: Lake) -> dict[str, int]:
    """Rows per mart, but for those that each build writes last."""
    counts = {}
    for name in MARTS:
        if name not in ("findings", "incidents"):
            table = find_table(lake, name)
            counts[name] = sum(file.rows for file in active_files(table)) if table is not None else 0
    return counts
