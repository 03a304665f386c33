"""Runs `make demo`: four example messages, then the recorded incidents through the whole pipeline. Prints under 80
lines; `--long` prints the page of each message and the complete report."""

import argparse
import os
import shutil
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING

from kafkascope.cli.reference.page import show_page
from kafkascope.cli.report_text import print_report, print_verdict
from kafkascope.cli.spark.ingest_account import print_lines, read_lines
from kafkascope.cli.spark.options import need_spark
from kafkascope.cli.spark.session import ProgressLine, spark_session, timings
from kafkascope.cli.terminal import heading, paint, prose, width
from kafkascope.codec.annotations.frame import annotated_frame
from kafkascope.codec.identify.identify import identify
from kafkascope.codec.json_form import to_json
from kafkascope.errors import KafkascopeError
from kafkascope.schema.export import span_text
from kafkascope.schema.layouts.examples import example
from kafkascope.schema.layouts.layout import Layout, layout
from kafkascope.schema.prose import paragraphs

if TYPE_CHECKING:
    from kafkascope.report.build import Report

_ROOT = Path(__file__).parents[1]
CAPTURES = _ROOT / "tests" / "captures"
# Rebuilt on each run; `make clean` removes it.
_HERE = _ROOT / ".cache" / "demo"
MESSAGES = (
    ("ShareGroupDescribeResponse", 1),
    ("StreamsGroupHeartbeatResponse", 0),
    ("ShareFetchRequest", 2),
    ("DescribeQuorumResponse", 1),
)
# Fewer than there are: the story has to be short.
RECORDINGS = ("clients", "quorum", "share", "streams")
_STORY = (
    "Four recordings, made with tcpdump on a real Kafka: a share group with a member that hangs and one that dies, a"
    " streams group that loses a member, a quorum whose leader is killed, and thirteen clients of different versions."
)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.demo", description="Show kafkascope on recorded incidents.")
    parser.add_argument("--long", action="store_true", help="print the page of each message and the complete report")
    long = parser.parse_args(arguments).long
    messages(long=long)
    try:
        _incidents(long=long)
    except KafkascopeError as error:
        print(f"kafkascope: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


def messages(*, long: bool = False) -> None:
    if not long:
        heading("Four messages")
    for name, version in MESSAGES:
        _message(layout(name, version), long=long)
    if not long:
        print("Each decodes and encodes to the same bytes. See kafkascope show ShareFetch:2")


def _message(message_layout: Layout, *, long: bool) -> None:
    known, version = message_layout.message, message_layout.version
    if long:
        _line()
        show_page(message_layout)
    value = example(known.name, version)
    data, _ = annotated_frame(message_layout, value)
    read = identify(data, f"{known.name}:{version}", None)
    body = read.body or (read.frame.body if read.frame else None)
    assert body is not None and read.exact
    assert to_json(known.name, version, body.value) == to_json(known.name, version, value)
    if long:
        heading("Decoded back")
        print(f"  {len(data)} bytes decode to the example above and encode to the same bytes.")
        return
    facts = f"API key {known.key}, Kafka {span_text(known.releases_of(version))}, {len(data)} bytes"
    print(f"  {paint(f'{known.name} v{version}', 'bold')}  {facts}")
    print(f"    {shorten(paragraphs(known)[0].split('. ')[0], width() - 8, placeholder=' …')}")


def _incidents(*, long: bool) -> None:
    _line()
    heading("The recorded incidents")
    prose(_STORY)
    need_spark("the demo")
    from kafkascope.lake.home import make_lake
    from kafkascope.pipeline.ingestion.ingest import ingest
    from kafkascope.pipeline.mart.build import build_marts
    from kafkascope.report.build import build
    from kafkascope.report.page.page import page
    from kafkascope.report.summaries.scope import Scope

    shutil.rmtree(_HERE, ignore_errors=True)
    lake = make_lake(_HERE / "lake")
    where = os.path.relpath(_HERE / "lake")
    progress = ProgressLine()
    with spark_session(None, progress) as spark:
        with progress.step("reading"):
            done = ingest(
                spark, [CAPTURES / name / "capture.pcap.xz" for name in RECORDINGS], lake, progress=progress.update
            )
        with progress.step("building the marts"):
            build_marts(spark, lake)
    print()
    print_lines(read_lines(done))
    print()
    began = time.monotonic()
    report = build(lake, Scope(), datetime.now(UTC))
    file = _HERE / "report.html"
    file.write_text(page(report), encoding="utf-8")
    story(report, os.path.relpath(file), long=long)
    progress.seconds["the report"] = time.monotonic() - began
    print()
    print_lines([f"took {timings(progress.seconds)}"])
    print(f"Next: open {os.path.relpath(file)} in a browser")
    print(f"      .venv/bin/kafkascope report {where}")
    print("      .venv/bin/kafkascope show ShareFetch")


def story(report: "Report", file: str, *, long: bool) -> None:
    """The verdict and the incidents, and where the page is."""
    if long:
        print_report(report, [("page", file, os.path.getsize(file))])
        return
    print_verdict(report)
    print(f"\nThe report with charts and evidence: {file}")


def _line() -> None:
    print(paint("─" * min(width(), 100), "dim"))


if __name__ == "__main__":
    sys.exit(main())
