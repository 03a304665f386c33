"""Runs `make demo`: four example messages, then the recorded incidents through the whole pipeline. Prints under 80
lines; `--long` shows the whole page of each message."""

import argparse
import os
import shutil
import sys
import time
from pathlib import Path
from textwrap import shorten

from kafkascope.cli.main import main as kafkascope
from kafkascope.cli.reference.page import show_page
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
    " streams group that loses a member, a quorum whose leader is killed, and thirteen clients of all ages."
)
_HEX_BYTES = 8


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.demo", description="Show kafkascope on recorded incidents.")
    parser.add_argument("--long", action="store_true", help="show the whole page of each of the four messages")
    messages(long=parser.parse_args(arguments).long)
    try:
        _incidents()
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
        print("Each decodes to its example and encodes to the same bytes. More: kafkascope show ShareFetchRequest:2")


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
    print(f"  {paint(f'{known.name} v{version}', 'bold')}  {facts}: {data[:_HEX_BYTES].hex(' ')} …")
    print(f"    {shorten(paragraphs(known)[0].split('. ')[0], width() - 8, placeholder=' …')}")


def _incidents() -> None:
    _line()
    heading("The recorded incidents")
    prose(_STORY)
    need_spark("the demo")
    from kafkascope.lake.home import make_lake
    from kafkascope.pipeline.ingestion.ingest import ingest
    from kafkascope.pipeline.mart.build import build_marts

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
    # Exit code 1 means that a finding is critical, which the demo expects.
    code = kafkascope(["report", where, "--html", os.path.relpath(_HERE / "report.html")])
    if code > 1:
        raise SystemExit(code)
    progress.seconds["the report"] = time.monotonic() - began
    print()
    print_lines([f"took {timings(progress.seconds)}"])
    print(f"Next: open {os.path.relpath(_HERE / 'report.html')} in a browser; .venv/bin/kafkascope lake info {where};")
    print("      .venv/bin/kafkascope show ShareFetch; .venv/bin/kafkascope --help")


def _line() -> None:
    print(paint("─" * min(width(), 100), "dim"))


if __name__ == "__main__":
    sys.exit(main())
