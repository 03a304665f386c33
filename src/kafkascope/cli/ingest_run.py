"""`ingest` and `marts` at work: a Spark session on this machine, progress on stderr, an account at the end."""

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kafkascope.cli.read_units import number, plural, size
from kafkascope.cli.terminal import note, width
from kafkascope.errors import InputError, KafkascopeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafkascope.pipeline.ingest import Ingested

BAR_SECONDS, PLAIN_SECONDS = 0.2, 10.0
BAR_LETTERS = 20
BAD_INPUT = 3


class Bar:
    """Bytes of an ingest: a bar on a terminal, a plain line now and then elsewhere."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._began = self._shown = time.monotonic()

    def step(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._shown < (BAR_SECONDS if self._terminal else PLAIN_SECONDS) or not total:
            return
        self._shown = now
        seconds = max(now - self._began, 0.001)
        share = min(done / total, 1.0)
        left = f", {seconds * (1 - share) / share:.0f} s left" if share > 0.02 else ""
        text = f"{share:>4.0%} of {size(total)}, {size(round(done / seconds))}/s{left}"
        if self._terminal:
            bar = "#" * round(share * BAR_LETTERS)
            print(f"\r\033[K{f'[{bar:.<{BAR_LETTERS}}] {text}'[: width() - 1]}", end="", file=sys.stderr, flush=True)
        else:
            note(text)

    def clear(self) -> None:
        if self._terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def step(text: str) -> None:
    """A line for a person who waits."""
    note(text)


@contextmanager
def spark_session(cores: int | None) -> "Iterator[SparkSession]":
    """Spark's own words go to a file, which is named where something goes wrong that is not ours."""
    from kafkascope.pipeline.session import local_session, one_line

    with tempfile.NamedTemporaryFile(prefix="kafkascope-spark-", suffix=".log", delete=False) as log:
        pass
    step("starting Spark")
    spark = local_session(cores, log=log.name)
    try:
        yield spark
    except KafkascopeError:
        raise
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark", "py4j")):
            raise
        raise InputError(f"{one_line(error)} (Spark's own log is {log.name})") from None
    finally:
        spark.stop()


class Command:
    def __init__(self, uris: tuple[str, ...], where: str, *, cores: int | None, marts: bool, as_json: bool) -> None:
        self._uris, self._where, self._cores = uris, where, cores
        self._marts, self._as_json = marts, as_json

    def run(self, *, contents: bool, pseudonymise: bool, plan: str, ports: tuple[int, ...], follow: bool) -> int:
        from kafkascope.lake.home import make_lake
        from kafkascope.pipeline.ingest import Options, ingest
        from kafkascope.pipeline.inputs import find

        # Before Spark takes its seconds.
        find(self._uris)
        lake = make_lake(self._where)
        options = Options(contents=contents, pseudonymise=pseudonymise, plan=plan, kafka_ports=ports, tasks=self._cores)
        with spark_session(self._cores) as spark:
            if follow:
                from kafkascope.pipeline.following import follow as go_on

                return go_on(spark, self._uris, lake, options, self._told, marts=self._marts)
            bar = Bar()
            step("reading")
            done = ingest(spark, self._uris, lake, options, bar.step)
            bar.clear()
            if self._marts and done.new:
                step("building the marts")
                from kafkascope.pipeline.marts.build import build_marts

                build_marts(spark, lake)
        self._told(done)
        return BAD_INPUT if done.bad else 0

    def _told(self, done: "Ingested") -> None:
        if self._as_json:
            from kafkascope.cli.output import print_json

            print_json(plain(done))
            return
        for line in account_lines(done, self._where):
            print(line)


def account_lines(done: "Ingested", where: str) -> list[str]:
    """What was read, what was lost and why."""
    lines = []
    if done.known:
        lines.append(f"{plural(len(done.known), 'file')} in the lake already, left out")
    for uri, error in done.bad.items():
        lines.append(f"not read: {uri}: {error}")
    if not done.new:
        return lines or ["nothing to do"]
    lines.append(
        f"{plural(len(done.new), 'file')} ({size(done.bytes)}) into {where}: {plural(done.exchanges, 'exchange')} in"
        f" {plural(len(done.rows), 'table')}, ingest {done.ingest_id}"
    )
    odd = [
        f"{number(count)} {words}"
        for status, words in (
            ("unanswered", "without an answer"),
            ("answer_only", "without a request"),
            ("undecoded", "that cannot be read"),
        )
        if (count := done.statuses.get(status, 0))
    ]
    if odd:
        lines.append(f"  {', '.join(odd)}")
    lost = sum(one.lost_bytes for one in done.accounts.values())
    if lost:
        places = sum(one.lost_places for one in done.accounts.values())
        lines.append(f"  lost: {size(lost)} in {plural(places, 'place')} of Kafka streams")
    if done.quarantined:
        lines.append(f"  {plural(done.quarantined, 'row')} in quarantine")
    others = {name: found for name, found in done.protocols.items() if name != "kafka" and found[1]}
    if others:
        told = [f"{plural(count, 'connection')} of {name} ({size(seen)})" for name, (count, seen) in others.items()]
        lines.append(f"  left alone: {', '.join(told)}")
    return lines


def plain(done: "Ingested") -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(done)
