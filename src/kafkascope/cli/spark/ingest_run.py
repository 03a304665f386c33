"""Runs `ingest`: finds the recordings before Spark starts, reads them, updates the marts, prints a summary."""

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kafkascope.cli.spark.ingest_account import account_json, account_lines, findings_text, print_lines
from kafkascope.cli.spark.interrupts import StopRequest
from kafkascope.cli.spark.session import ProgressLine, spark_session, timings
from kafkascope.cli.terminal import note
from kafkascope.errors import InputError, NotFoundError, UsageError

if TYPE_CHECKING:
    from kafkascope.lake.home import Lake
    from kafkascope.pipeline.ingestion.ingest import Ingested, Options

_BAD_INPUT = 3
COMPILING, READING, BUILDING = "compiling kernels, once", "reading", "building the marts"


class Command:
    """`thresholds` are those of findings, None for no marts; `every` is the shortest time between builds of the marts
    while a folder is followed, in seconds."""

    def __init__(
        self, uris: tuple[str, ...], where: str, options: "Options", thresholds: Mapping[str, float] | None, *,
        as_json: bool, every: float,
    ) -> None:  # fmt: skip
        self._uris, self._where, self._options = uris, where, options
        self._thresholds, self._as_json, self._every = thresholds, as_json, every
        self._progress = ProgressLine()
        self._built: list[str] = []
        self._stop = StopRequest()

    def once(self) -> int:
        from kafkascope.lake.upkeep.upgrade import lake_to_write
        from kafkascope.pipeline.ingestion.inputs import find_inputs

        inputs = find_inputs(self._uris)
        if all(item.error is not None for item in inputs):
            raise InputError(str(inputs[0].error))
        lake = lake_to_write(self._where)
        landed = False
        self._compile()
        try:
            with spark_session(self._options.tasks, self._progress) as spark:
                done = self._read(spark, lake)
                landed = True
                # Only one of two files with the same bytes is read; then the lake has the other too.
                done_uris = {*done.new, *done.known, *done.bad}
                done.known += [item.uri for item in inputs if item.uri not in done_uris]
                rows = self._marts(spark, lake, done)
        except KeyboardInterrupt:
            again = f"kafkascope marts {self._where}" if landed else "the same command again"
            note(f"interrupted; {'the recordings are in the lake, ' if landed else ''}run {again} for the rest")
            raise
        self._report(lake, done, rows)
        return _BAD_INPUT if done.bad else 0

    def follow(self) -> int:
        from kafkascope.cli.spark.marts_state import are_old
        from kafkascope.lake.place import place_of
        from kafkascope.lake.upkeep.upgrade import lake_to_write
        from kafkascope.pipeline.ingestion.follow import follow
        from kafkascope.pipeline.mart_rebuilder import MartRebuilder

        place = place_of(self._uris[0])
        if len(self._uris) > 1 or not place.local:
            raise UsageError("--follow takes one folder on this machine")
        if not place.exists():
            raise NotFoundError(f"{place.uri}: no such directory")
        if not os.path.isdir(place.path):
            raise UsageError(f"{place.uri}: is a file; give --follow the folder that receives the files")
        lake = lake_to_write(self._where)
        self._compile()
        with spark_session(self._options.tasks, self._progress) as spark:
            note(f"following {self._uris[0]} until Ctrl-C; a file is read once it is complete")

            def report_batch(done: "Ingested") -> None:
                # Steps of the session's start, and of the previous batch.
                self._progress.seconds.clear()
                self._report(lake, done, None, following=True)

            rebuilder = None
            if self._thresholds is not None:
                rebuilder = MartRebuilder(lambda: self._rebuilt(spark, lake), self._every, stale=are_old(lake))
            with self._stop.listening():
                follow(
                    spark, self._uris, lake, self._options, report_batch, rebuilder=rebuilder, end=self._stop.requested
                )
        if self._stop.requested.is_set():
            raise KeyboardInterrupt
        return 0

    def _rebuilt(self, spark: Any, lake: "Lake") -> None:
        """Builds the marts of a followed folder's lake. A second Ctrl-C leaves them unchanged."""
        from kafkascope.cli.spark.marts_state import severities
        from kafkascope.pipeline.mart.build import build_marts

        self._progress.seconds.clear()
        self._built.clear()
        try:
            with self._progress.step(BUILDING), self._stop.abandonable():
                rows = build_marts(spark, lake, self._thresholds, report=self._built.append)
        except KeyboardInterrupt:
            note(f"interrupted; the marts are unchanged, kafkascope marts {self._where} builds them")
            raise
        if self._as_json:
            from kafkascope.cli.output import print_json

            seconds = {step: round(duration, 3) for step, duration in self._progress.seconds.items()}
            print_json(
                {
                    "lake": lake.uri,
                    "built": self._built,
                    "marts": rows,
                    "findings": severities(lake),
                    "seconds": seconds,
                }
            )
        else:
            findings = f"marts: {findings_text(severities(lake))}"
            print_lines([*self._built, findings, f"took {timings(self._progress.seconds)}"])

    def _compile(self) -> None:
        """Before the workers, which would wait for each other's kernels."""
        from kafkascope.capture.warm_up.run import is_warm, warm_up

        if not is_warm():
            # Where they can't be kept the workers compile them.
            with self._progress.step(COMPILING), suppress(InputError):
                warm_up()

    def _read(self, spark: Any, lake: "Lake") -> "Ingested":
        from kafkascope.lake.place import readable
        from kafkascope.pipeline.ingestion.ingest import ingest

        with readable(self._where), self._progress.step(READING):
            return ingest(spark, self._uris, lake, self._options, self._progress.update)

    def _marts(self, spark: Any, lake: "Lake", done: "Ingested") -> dict[str, int] | None:
        """Also builds them without new recordings, if an earlier run was cut off or made none."""
        from kafkascope.cli.spark.marts_state import are_old

        if self._thresholds is None or not (done.new or self._thresholds or are_old(lake)):
            return None
        from kafkascope.pipeline.mart.build import build_marts

        with self._progress.step(BUILDING):
            return build_marts(spark, lake, self._thresholds, report=self._built.append)

    def _report(self, lake: "Lake", done: "Ingested", rows: dict[str, int] | None, *, following: bool = False) -> None:
        from kafkascope.cli.spark.marts_state import severities

        severity_counts = severities(lake) if rows is not None else None
        if self._as_json:
            from kafkascope.cli.output import print_json

            print_json(account_json(done, lake.uri, rows, severity_counts, self._progress.seconds, built=self._built))
        else:
            lines = account_lines(
                done, self._where, rows, severity_counts, self._progress.seconds, built=self._built, following=following
            )
            print_lines(lines)
