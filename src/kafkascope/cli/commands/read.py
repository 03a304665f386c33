"""`kafkascope read` lists the exchanges of recordings, or prints one exchange, statistics, or JSON."""

import sys
from typing import TYPE_CHECKING, Any

import click

from kafkascope.cli.arguments import complete_error, json_option

if TYPE_CHECKING:
    from kafkascope.capture.query.select import ExchangeFilter

# The range of int16, the type of API keys and error codes.
INT16 = range(-(2**15), 2**15)


def complete_api(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    from kafkascope.schema.catalog import apis

    return [name for name in apis().values() if name.lower().startswith(incomplete.lower())]


@click.command
@click.argument("files", metavar="FILE…", nargs=-1, required=True)
@click.option("--api", "apis", metavar="API", multiple=True, shell_complete=complete_api, help="Only this API.")
@click.option(
    "--client", "clients", metavar="ID", multiple=True, help="Only this client id or address; * and ? are wildcards."
)
@click.option(
    "--group", "groups", metavar="ID", multiple=True, help="Only exchanges that name this group; * and ? are wildcards."
)
@click.option(
    "--topic",
    "topics",
    metavar="NAME",
    multiple=True,
    help="Only exchanges that name this topic; * and ? are wildcards.",
)
@click.option(
    "--error", "errors", metavar="NAME|CODE|any", multiple=True, shell_complete=complete_error,
    help="Only responses with this error, or with any.",
)  # fmt: skip
@click.option(
    "--slow", metavar="TIME", help="Only exchanges that took at least this long, as in 100ms; without long polls."
)
@click.option("--between", metavar="A B", nargs=2, help="Only requests from A to before B; - is an open end.")
@click.option(
    "--where", metavar="EXPR", help='Only exchanges with this condition: status == "unanswered" and api_key < 20.'
)
@click.option(
    "--port", "ports", metavar="N", type=int, multiple=True, help="A port that Kafka uses, for connections in doubt."
)
@click.option("--exchange", "wanted_id", metavar="ID", help="Print this exchange in full: a tree beside its bytes.")
@click.option("--stats", is_flag=True, help="Print calls, bytes, errors and latencies by API, client and connection.")
@click.option("--records", is_flag=True, help="With --exchange: include keys, values and headers of records.")
@click.option("--full", is_flag=True, help="With --exchange: print every byte and item, however long.")
@click.option("--follow", is_flag=True, help="Keep reading while the file grows, until Ctrl-C.")
@json_option
def run(
    files: tuple[str, ...],
    ports: tuple[int, ...],
    wanted_id: str | None,
    stats: bool,
    records: bool,
    full: bool,
    follow: bool,
    as_json: bool,
    **filters: Any,
) -> int:
    """List the exchanges of captures and request logs.

    FILE is a pcap or pcapng file, plain or compressed, a broker's request log, or - for standard input. An exchange
    must match all filters. Times are UTC.

    Exits with 1 if there is no Kafka in it or nothing matches the filters, with 3 if a file can't be read.
    """
    from kafkascope.errors import UsageError

    if wanted_id is not None and (stats or follow):
        raise UsageError("--exchange prints one exchange; leave out --stats and --follow")
    if stats and follow:
        raise UsageError("--stats needs the whole recording, and --follow never ends; leave one out")
    if (records or full) and wanted_id is None:
        raise UsageError("--records and --full need --exchange ID")
    if follow and len(files) > 1:
        raise UsageError("--follow takes one file")
    if "-" in files and sys.stdin is not None and sys.stdin.isatty():
        raise UsageError("standard input is a terminal; give a file or a pipe: tcpdump -U -w - | kafkascope read -")
    for port in ports:
        if not 0 < port < 65_536:
            raise UsageError(f"--port: {port} isn't a port; ports are 1 to 65535")
    used = [f"--{name.removesuffix('s')}" for name, value in filters.items() if value not in (None, ())]
    if wanted_id is not None and used:
        does = "does" if len(used) == 1 else "do"
        raise UsageError(f"--exchange finds one exchange by its id; {' and '.join(used)} {does} not go with it")
    selection = _selection(**filters)
    from kafkascope.cli.read.run import Command

    command = Command(files, selection, ports, follow=follow)
    if wanted_id is not None:
        return command.one_exchange(wanted_id, records=records, full=full, as_json=as_json)
    if stats:
        return command.stats(as_json=as_json)
    return command.json_lines() if as_json else command.lines()


def _selection(
    apis: tuple[str, ...],
    clients: tuple[str, ...],
    groups: tuple[str, ...],
    topics: tuple[str, ...],
    errors: tuple[str, ...],
    slow: str | None,
    between: tuple[str, str] | None,
    where: str | None,
) -> "ExchangeFilter":
    from kafkascope.cli.units import parse_duration, parse_moment
    from kafkascope.errors import UsageError
    from kafkascope.extras import need_extras

    span = (parse_moment(between[0], "--between"), parse_moment(between[1], "--between")) if between else None
    if between and span and span[0] and span[1] and span[0] >= span[1]:
        raise UsageError(f"--between: the end {between[1]} isn't after the start {between[0]}")
    need_extras("read", "columns")
    from kafkascope.capture.query.select import ExchangeFilter

    condition = None
    if where is not None:
        from kafkascope.capture.query.filter_language import parse_where

        condition = parse_where(where)
    return ExchangeFilter(
        apis=tuple(_api_key(name) for name in apis),
        clients=clients,
        groups=groups,
        topics=topics,
        errors=_codes(errors) if errors else None,
        slow_us=parse_duration(slow, "--slow") if slow is not None else None,
        between=span,
        where=condition,
    )


def _codes(errors: tuple[str, ...]) -> tuple[int, ...]:
    """Empty means any."""
    return () if "any" in map(str.lower, errors) else tuple(map(_code, errors))


def _code(name: str) -> int:
    from kafkascope.schema.errors.error_codes import find_error

    number = _number(name, "--error", "error codes")
    return find_error(name).code if number is None else number


def _number(text: str, flag: str, what: str) -> int | None:
    """A number, even if the catalog doesn't know it; None for a name."""
    from kafkascope.errors import UsageError
    from kafkascope.schema.names import parse_number

    number = parse_number(text)
    if number is not None and number not in INT16:
        raise UsageError(f"{flag}: {number} is out of range; {what} are {INT16[0]} to {INT16[-1]}")
    return number


def _api_key(name: str) -> int:
    from kafkascope.errors import NotFoundError
    from kafkascope.schema.catalog import message
    from kafkascope.schema.names import clip, find_api, suggest

    number = _number(name, "--api", "API keys")
    if number is not None:
        return number
    api = find_api(name)
    if api is None:
        raise NotFoundError(f"unknown API {clip(name)}{suggest(name)}")
    return message(f"{api}Request").key or 0
