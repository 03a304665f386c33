"""`kafkascope read` lists the exchanges of recordings, one per line, or shows one whole, statistics, or JSON."""

import sys
from typing import TYPE_CHECKING

import click

from kafkascope.cli.arguments import complete_error, json_option

if TYPE_CHECKING:
    from kafkascope.capture.query.select import ExchangeFilter

# What an int16 takes: keys of APIs and error codes on the wire.
INT16 = range(-(2**15), 2**15)


def complete_api(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    from kafkascope.schema.catalog import apis

    return [name for name in apis().values() if name.lower().startswith(incomplete.lower())]


@click.command
@click.argument("files", metavar="FILE…", nargs=-1, required=True)
@click.option("--api", "apis", metavar="API", multiple=True, shell_complete=complete_api, help="Only this API.")
@click.option("--client", "clients", metavar="ID", multiple=True, help="Only this client id or address; * and ? work.")
@click.option("--group", "groups", metavar="ID", multiple=True, help="Only what names this group; * and ? work.")
@click.option("--topic", "topics", metavar="NAME", multiple=True, help="Only what names this topic; * and ? work.")
@click.option(
    "--error", "errors", metavar="NAME|CODE|any", multiple=True, shell_complete=complete_error,
    help="Only answers with this error, or with any.",
)  # fmt: skip
@click.option("--slow", metavar="TIME", help="Only what took this long, as 100ms; long polls are left out.")
@click.option("--between", metavar="A B", nargs=2, help="Only requests from A until before B; - is an open end.")
@click.option("--where", metavar="EXPR", help='Only where this holds, as: status == "unanswered" and api_key < 20.')
@click.option("--port", "ports", metavar="N", type=int, multiple=True, help="A port of Kafka's, where it is in doubt.")
@click.option("--exchange", "wanted_id", metavar="ID", help="This one whole: a tree beside its bytes.")
@click.option("--stats", is_flag=True, help="Calls, bytes, errors, latencies by API, client and connection.")
@click.option("--records", is_flag=True, help="With --exchange: keys, values and headers of records too.")
@click.option("--full", is_flag=True, help="With --exchange: every byte and item, however long.")
@click.option("--follow", is_flag=True, help="Go on while the file grows, until Ctrl-C.")
@json_option
def run(
    files: tuple[str, ...],
    apis: tuple[str, ...],
    clients: tuple[str, ...],
    groups: tuple[str, ...],
    topics: tuple[str, ...],
    errors: tuple[str, ...],
    slow: str | None,
    between: tuple[str, str] | None,
    where: str | None,
    ports: tuple[int, ...],
    wanted_id: str | None,
    stats: bool,
    records: bool,
    full: bool,
    follow: bool,
    as_json: bool,
) -> int:
    """List the exchanges of captures and request logs.

    FILE is a pcap or pcapng file, plain or compressed, a broker's request log, or - for standard input. Every filter
    that is given must hold. Times are UTC.

    Exits with 1 when there is no Kafka in it or the filters let nothing through, with 3 when a file cannot be read.
    """
    from kafkascope.errors import UsageError

    if wanted_id is not None and (stats or follow):
        raise UsageError("--exchange shows one exchange; --stats and --follow are for all of them")
    if stats and follow:
        raise UsageError("--stats is for a whole recording; --follow never has one")
    if (records or full) and wanted_id is None:
        raise UsageError("--records and --full go with --exchange ID")
    if follow and len(files) > 1:
        raise UsageError("--follow goes on with one file")
    if "-" in files and sys.stdin is not None and sys.stdin.isatty():
        raise UsageError("standard input is a terminal; give a file or a pipe: tcpdump -U -w - | kafkascope read -")
    for port in ports:
        if not 0 < port < 65_536:
            raise UsageError(f"--port: {port} is no port; there are 1 to 65535")
    filters = {
        "--api": apis, "--client": clients, "--group": groups, "--topic": topics, "--error": errors, "--slow": slow,
        "--between": between, "--where": where,
    }  # fmt: skip
    if wanted_id is not None and (used := [flag for flag, value in filters.items() if value not in (None, ())]):
        does = "does" if len(used) == 1 else "do"
        raise UsageError(f"--exchange finds one exchange by its id; {' and '.join(used)} {does} not go with it")
    selection = _selection(apis, clients, groups, topics, errors, slow, between, where)
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
        raise UsageError(f"--between: the end {between[1]} is not behind the start {between[0]}")
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
    """Empty for any."""
    return () if "any" in map(str.lower, errors) else tuple(map(_code, errors))


def _code(name: str) -> int:
    from kafkascope.schema.errors.error_codes import find_error

    number = _number(name, "--error", "code of an error")
    return find_error(name).code if number is None else number


def _number(text: str, flag: str, what: str) -> int | None:
    """Also one that the catalog does not know; None for a name."""
    from kafkascope.errors import UsageError
    from kafkascope.schema.names import parse_number

    number = parse_number(text)
    if number is not None and number not in INT16:
        raise UsageError(f"{flag}: {number} is no {what}; there are {INT16[0]} to {INT16[-1]}")
    return number


def _api_key(name: str) -> int:
    from kafkascope.errors import NotFoundError
    from kafkascope.schema.catalog import message
    from kafkascope.schema.names import clip, find_api, suggest

    number = _number(name, "--api", "key of an API")
    if number is not None:
        return number
    api = find_api(name)
    if api is None:
        raise NotFoundError(f"no API is called {clip(name)}{suggest(name)}")
    return message(f"{api}Request").key or 0
