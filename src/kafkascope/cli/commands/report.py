"""`kafkascope report LAKE` prints the verdict and the incidents of a lake, and writes the page and the JSON."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from kafkascope.lake.home import Lake
    from kafkascope.report.summaries.scope import Scope

STDOUT = "-"
CRITICAL, UNKNOWN_CODE = 1, 3


@click.command
@click.argument("where", metavar="LAKE", required=False)
@click.option("--html", "html_file", metavar="F", help="Write the page to this file, or to standard output with -.")
@click.option(
    "--json", "json_file", metavar="[F]", is_flag=False, flag_value=STDOUT,
    help="Write JSON for other programs, to this file or, without FILE, to standard output.",
)  # fmt: skip
@click.option(
    "--group", "groups", metavar="G", multiple=True, help="Only this share or streams group; * and ? are wildcards."
)
@click.option("--between", metavar="A B", nargs=2, help="Only from A to before B; - is an open end.")
def run(
    where: str | None,
    html_file: str | None,
    json_file: str | None,
    groups: tuple[str, ...],
    between: tuple[str, str] | None,
) -> int:
    """Report the health of the clusters in a lake.

    LAKE is the folder or URI that `ingest` wrote to. Prints the verdict and the worst incidents. The page is one file
    that needs no network. Times are UTC.

    Exits with 1 if an incident is critical, with 3 if nothing could be judged: no exchange was recorded in that time,
    or there is no lake, or it has no marts.
    """
    from datetime import UTC, datetime

    from kafkascope.errors import UsageError

    if where is None:
        instead = "" if json_file is None else "; put it before --json: kafkascope report LAKE --json"
        raise UsageError(f"LAKE is missing{instead} (see kafkascope report --help)")
    if html_file is not None and html_file == json_file:
        raise UsageError(f"--html and --json both write to {html_file}; give each its own file")
    lake, scope = _open(where), _scope(groups, between)
    from kafkascope.lake.place import readable
    from kafkascope.report.build import build

    with readable(where):
        report = build(lake, scope, datetime.now(UTC))
    written = []
    if html_file is not None:
        from kafkascope.report.page.page import page

        written += _write(html_file, page(report), "page")
    if json_file is not None:
        from kafkascope.report.json_form import report_json, text_of

        written += _write(json_file, text_of(report_json(report)) + "\n", "JSON")
    if STDOUT not in (html_file, json_file):
        from kafkascope.cli.report_text import print_report

        print_report(report, written)
    verdict = report.findings.verdict
    return CRITICAL if verdict.critical else UNKNOWN_CODE if verdict.state == "unknown" else 0


def _open(where: str) -> "Lake":
    from kafkascope.errors import InputError, NotFoundError
    from kafkascope.extras import need_extras

    need_extras("report", "lake")
    from kafkascope.lake.home import open_lake

    try:
        return open_lake(where)
    except NotFoundError as error:
        # Exit code 1 means that something is critical.
        raise InputError(str(error)) from None


def _scope(groups: tuple[str, ...], between: tuple[str, str] | None) -> "Scope":
    from kafkascope.cli.units import parse_moment
    from kafkascope.errors import UsageError
    from kafkascope.report.summaries.scope import Scope
    from kafkascope.times import microseconds_of

    ends: list[int | None] = []
    for text in between or ("-", "-"):
        moment = parse_moment(text, "--between")
        ends.append(None if moment is None else microseconds_of(moment))
    since, until = ends
    if between and since is not None and until is not None and since >= until:
        raise UsageError(f"--between: the end {between[1]} isn't after the start {between[0]}")
    return Scope(groups, since, until)


def _write(file: str, text: str, what: str) -> list[tuple[str, str, int]]:
    """What was written, the file, and its bytes."""
    if file == STDOUT:
        print(text, end="")
        return []
    from kafkascope.lake.place import place_of

    content = text.encode()
    place = place_of(file)
    place.write(content)
    return [(what, place.uri, len(content))]
