"""Builds all marts of a lake: goes on from the latest checkpoint before what changed since the last build, or from the
beginning. Each mart changes in one commit, and the account of the build is committed last."""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace as changed
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from kafkascope.errors import InputError
from kafkascope.lake.home import Lake, find_lake
from kafkascope.lake.upkeep.upgrade import upgraded
from kafkascope.lake.write.catalog_tables import write_catalog
from kafkascope.lake.write.commit import Overtaken
from kafkascope.lake.write.files import NewFile
from kafkascope.pipeline.mart.base.new_files import OutdatedError
from kafkascope.pipeline.mart.base.settings import session_of_its_own
from kafkascope.pipeline.mart.base.sources import OpenLake, Sources
from kafkascope.pipeline.mart.commits import commit_build, counts_of
from kafkascope.pipeline.mart.course import Course, course_of
from kafkascope.pipeline.mart.findings import write_findings, write_incidents
from kafkascope.pipeline.mart.increments.checkpoints import BEGINNING
from kafkascope.pipeline.mart.increments.plan import Plan
from kafkascope.pipeline.mart.logs.agreement import write_agreement
from kafkascope.pipeline.mart.names.before import digest_before
from kafkascope.pipeline.mart.names.facts import LakeFacts, collect_facts
from kafkascope.pipeline.mart.parts import FACTS, MART_PARTS, Build, Part
from kafkascope.pipeline.spark_jobs import parallel_jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Jobs and commits that run in parallel: planning one leaves the executors idle.
_AT_ONCE = 5
# How often another build may come first.
_ATTEMPTS = 5

Report = Callable[[str], None]


def build_marts(
    spark: "SparkSession",
    lake: str | os.PathLike[str] | Lake,
    thresholds: Mapping[str, float] | None = None,
    *,
    rebuild: bool = False,
    report: Report | None = None,
) -> dict[str, int]:
    """Returns the number of rows per mart. `thresholds` overrides defaults of findings, as `rule.threshold`. `rebuild`
    makes everything from the beginning. `report` gets a line about what was rebuilt, and why."""
    lake = lake if isinstance(lake, Lake) else upgraded(find_lake(lake))
    run = uuid4().hex
    for _ in range(_ATTEMPTS):
        try:
            counts = _built(spark, lake, course_of(lake, run, rebuild=rebuild), report or _nothing)
        except Overtaken:
            continue
        findings = write_findings(lake, thresholds or {}, f"mart-{run}")
        return {**counts, "findings": len(findings), "incidents": write_incidents(lake, findings, f"mart-{run}")}
    raise InputError(f"{lake.uri}: other processes keep building the marts; try again later")


def _built(spark: "SparkSession", lake: Lake, course: Course, report: Report) -> dict[str, int]:
    report(course.line)
    if not course.plans:
        write_catalog(lake)
        return counts_of(lake)
    sources = _SourcesByStart(course.opened)
    least = min(plan.since for plan in course.plans.values())
    with (
        session_of_its_own(spark, Sources(spark, course.opened, least).bytes) as own,
        ThreadPoolExecutor(_AT_ONCE) as pool,
        parallel_jobs(own, course.run, pool) as spark_jobs,
    ):
        facts_plan = course.plans[FACTS]
        collected = spark_jobs.submit(partial(_resumed, report, _facts, own, lake, sources, facts_plan))
        jobs: list[Future[_Made]] = []
        replaced = set[tuple[str, str]]()
        for part in MART_PARTS:
            build = partial(_part, part, course.before, collected, replaced)
            jobs.append(
                spark_jobs.submit(partial(_resumed, report, build, own, lake, sources, course.plans[part.name]))
            )
        catalog = pool.submit(write_catalog, lake)
        results = [job.result() for job in jobs]
        catalog.result()
        plans = {plan.part: plan for plan, _ in results}
        plans[FACTS], (facts, of_facts) = collected.result()
        files = [*of_facts, *(file for _, made in results for file in made)]
        before = {mark: digest_before(facts, mark) for mark in course.checkpoints}
        counts = commit_build(lake, course, plans, files, replaced, before, pool)
        whole, prefix = sources.of(own, BEGINNING), f"mart-{course.run}"
        return {**counts, "share_agreement": write_agreement(own, lake, whole, prefix, counts["share_deliveries"])}


def _nothing(_: str) -> None:
    """Where nobody wants to know."""


class _SourcesByStart:
    """Several parts go on from one checkpoint, and share the tables that they read."""

    def __init__(self, opened: OpenLake) -> None:
        self._opened = opened
        self._sources: dict[int, Sources] = {}

    def of(self, spark: "SparkSession", since: int) -> Sources:
        return self._sources.setdefault(since, Sources(spark, self._opened, since))


_Made = tuple[Plan, Any]


def _resumed(
    report: Report,
    build: Callable[..., object],
    spark: "SparkSession",
    lake: Lake,
    sources: _SourcesByStart,
    plan: Plan,
) -> _Made:
    """A part that can't go on from its state is made from the beginning, and without a checkpoint if its rows before
    one depend on what comes after it. What a state has was in a lake, so any error counts: one that isn't the state's
    is raised then."""
    try:
        return plan, build(spark, lake, sources.of(spark, plan.since), plan)
    except Exception as error:
        if plan.since == BEGINNING and not isinstance(error, OutdatedError):
            raise
        if plan.since != BEGINNING:
            reason = "more is known of the time before" if isinstance(error, OutdatedError) else type(error).__name__
            report(f"{plan.part} made from the beginning: its state can't be used ({reason})")
            whole = changed(plan, since=BEGINNING, marks=(*plan.earlier, *plan.marks), earlier=())
            return _resumed(report, build, spark, lake, sources, whole)
    bare = changed(plan, marks=(), earlier=())
    return bare, build(spark, lake, sources.of(spark, BEGINNING), bare)


def _facts(spark: "SparkSession", lake: Lake, sources: Sources, plan: Plan) -> tuple[LakeFacts, list[NewFile]]:
    return collect_facts(spark, sources, sources.absent, plan, lake)


def _part(
    part: Part, before: Mapping[int, str], collected: "Future[_Made]", replaced: set[tuple[str, str]],
    spark: "SparkSession", lake: Lake, sources: Sources, plan: Plan,
) -> list[NewFile]:  # fmt: skip
    def facts() -> LakeFacts:
        made: LakeFacts = collected.result()[1][0]
        return made

    if part.walks and plan.since != BEGINNING and before.get(plan.since) != digest_before(facts(), plan.since):
        raise OutdatedError
    return [] if plan.idle else part.write(Build(spark, lake, sources, plan, facts, replaced))
