"""Runs `ingest --share-group`: lands topics of plain frames in a lake, once or until Ctrl-C, and updates the marts."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kafkascope.cli.spark.ingest_account import findings_text, print_lines
from kafkascope.cli.spark.interrupts import StopRequest
from kafkascope.cli.spark.session import ProgressLine, spark_session, timings
from kafkascope.cli.terminal import note
from kafkascope.errors import InputError
from kafkascope.formatting import count

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from kafkascope.lake.home import Lake
    from kafkascope.pipeline.share.landing import Landed

_POLL_SECONDS = 1
_STARTS, _NO_PROCESS = 5, "Python worker failed to connect back"
_READING, _BUILDING = "reading", "building the marts"


class ShareCommand:
    """`thresholds` are those of findings, None for no marts."""

    def __init__(
        self, topics: tuple[str, ...], where: str, group: str, bootstrap: str | None, config: str | None, *,
        contents: bool, pseudonymise: bool, cores: int | None, thresholds: Mapping[str, float] | None, as_json: bool,
    ) -> None:  # fmt: skip
        self._where, self._cores, self._thresholds, self._as_json = where, cores, thresholds, as_json
        self._contents, self._pseudonymise = contents, pseudonymise
        self._progress, self._stop = ProgressLine(), StopRequest()
        texts = {"group": group, "topics": ",".join(topics), "bootstrap": bootstrap, "config": config}
        self._options = {name: text for name, text in texts.items() if text}
        self._frames = self._quarantined = self._batches = 0
        self._rows: dict[str, int] = {}
        self._built: list[str] = []

    def run(self, *, follow: bool) -> int:
        from kafkascope.lake.upkeep.upgrade import lake_to_write
        from kafkascope.pipeline.ingestion.pseudonyms import load_key
        from kafkascope.pipeline.share.landing import Landing, start_landing
        from kafkascope.pipeline.share.options import parse_options

        options = parse_options(self._options)
        # Wrong settings show before a lake is made.
        options.settings()
        lake = lake_to_write(self._where)
        secret = load_key() if self._pseudonymise else None
        landing = Landing(lake.uri, options.group, options.topics, self._contents, secret)
        trigger: dict[str, Any] = {"processingTime": "0 seconds"} if follow else {"availableNow": True}
        with spark_session(self._cores, self._progress) as spark:
            if follow:
                note(f"reading {', '.join(options.topics)} as a member of {options.group} until Ctrl-C")
            with self._progress.step(_READING), self._stop.listening():
                self._until_end(lambda: start_landing(spark, lake, landing, self._options, self._landed, **trigger))
            marts = self._marts(spark, lake)
        self._report(lake, marts)
        if self._stop.requested.is_set():
            raise KeyboardInterrupt
        return InputError.exit_code if self._quarantined else 0

    def _until_end(self, start: Callable[[], "StreamingQuery"]) -> None:
        """Spark gives a source's process 10 seconds to start; a busy machine gets another try."""
        for left in reversed(range(_STARTS)):
            query = start()
            try:
                while not self._stop.requested.is_set() and not query.awaitTermination(_POLL_SECONDS):
                    pass
                return
            except Exception as error:
                if _NO_PROCESS not in str(error) or not left:
                    raise
            finally:
                query.stop()

    def _landed(self, landed: "Landed") -> None:
        self._batches += 1
        self._frames += landed.frames
        self._quarantined += landed.quarantined
        for name, rows in landed.rows.items():
            self._rows[name] = self._rows.get(name, 0) + rows

    def _marts(self, spark: Any, lake: "Lake") -> dict[str, int] | None:
        from kafkascope.cli.spark.marts_state import are_old

        if self._thresholds is None or not (self._batches or are_old(lake)):
            return None
        from kafkascope.pipeline.mart.build import build_marts

        with self._progress.step(_BUILDING):
            return build_marts(spark, lake, self._thresholds, report=self._built.append)

    def _report(self, lake: "Lake", marts: dict[str, int] | None) -> None:
        from kafkascope.cli.spark.marts_state import severities

        severity_counts = severities(lake) if marts is not None else None
        if self._as_json:
            from kafkascope.cli.output import print_json

            seconds = {step: round(duration, 3) for step, duration in self._progress.seconds.items()}
            print_json(
                {
                    "lake": lake.uri,
                    "frames": self._frames,
                    "quarantined": self._quarantined,
                    "batches": self._batches,
                    "rows": self._rows,
                    "built": self._built,
                    "marts": marts,
                    "findings": severity_counts,
                    "seconds": seconds,
                }
            )
            return
        aside = f", {count(self._quarantined, 'frame')} in quarantine" if self._quarantined else ""
        lines = [f"{count(self._frames, 'frame')} in {count(self._batches, 'batch', 'batches')}{aside}"]
        lines += [f"  {name}: {count(rows, 'row')}" for name, rows in sorted(self._rows.items())]
        if severity_counts is not None:
            lines.append(f"marts: {findings_text(severity_counts)}")
        print_lines([*lines, f"took {timings(self._progress.seconds)}"])
