"""`kafkascope lake` lists what is in a lake, and deletes leftovers and old days from it."""

from shlex import quote
from typing import TYPE_CHECKING

import click

from kafkascope.cli.arguments import json_option

if TYPE_CHECKING:
    from datetime import date

    from kafkascope.lake.home import Lake
    from kafkascope.lake.upkeep.info import LakeInfo
    from kafkascope.lake.upkeep.retention import RemovedRows, Vacuumed

# Columns of numbers in every table printed here: rows, files, size.
_COUNTS = (1, 2, 3)

dry_run_option = click.option("--dry-run", is_flag=True, help="Print what would be deleted; change nothing.")


@click.group
def run() -> None:
    """Inspect and maintain a lake.

    LAKE is the folder or URI that `ingest` wrote to. Each command has --json. Exits with 1 if there is no lake, with 3
    if the folder contains something else.
    """


@run.command(name="info")
@click.argument("where", metavar="LAKE")
@json_option
def info_command(where: str, as_json: bool) -> int:
    """List tables and ingests.

    Tables with rows, files, bytes and times; running ingests, and leftovers of ingests that died.
    """
    lake = _open(where)
    from kafkascope.cli.output import plain, print_json
    from kafkascope.lake.place import readable
    from kafkascope.lake.upkeep.info import info

    with readable(where):
        lake_info = info(lake)
    if as_json:
        print_json(plain(lake_info, _INTERNAL))
    else:
        _print_info(lake_info)
    return 0


@run.command(name="vacuum")
@click.argument("where", metavar="LAKE")
@dry_run_option
@click.option(
    "--older-than", metavar="TIME", default="24h", show_default=True, help="Delete only files at least this old."
)
@json_option
def vacuum_command(where: str, dry_run: bool, older_than: str, as_json: bool) -> int:
    """Delete leftovers.

    Removes rows of ingests that died, and deletes files that no table refers to. Running ingests are spared, on any
    machine. Readers may still use files that were merged or removed a moment ago: those are deleted once they are older
    than --older-than.
    """
    from datetime import timedelta

    from kafkascope.cli.output import plain, print_json
    from kafkascope.cli.units import parse_duration

    age = timedelta(microseconds=parse_duration(older_than, "--older-than"))
    lake = _open(where)
    from kafkascope.lake.place import readable
    from kafkascope.lake.upkeep.retention import vacuum

    with readable(where):
        done = vacuum(lake, dry_run=dry_run, age=age)
    if as_json:
        print_json({"dry_run": dry_run, **plain(done, _INTERNAL)})
    else:
        _print_vacuum(done, dry_run)
    return 0


@run.command(name="expire")
@click.argument("where", metavar="LAKE")
@click.option("--before", metavar="DAY", required=True, help="The first day to keep, in UTC, as in 2026-11-15.")
@dry_run_option
@json_option
def expire_command(where: str, before: str, dry_run: bool, as_json: bool) -> int:
    """Remove the rows of whole days from every table.

    The lake remembers the recordings and won't ingest them again. `vacuum` deletes the files later.
    """
    from kafkascope.cli.output import plain, print_json

    day = _day(before)
    lake = _open(where)
    from kafkascope.lake.place import readable
    from kafkascope.lake.upkeep.retention import expire

    with readable(where):
        taken = expire(lake, day, dry_run=dry_run)
    if as_json:
        print_json(
            {"dry_run": dry_run, "before": day.isoformat(), "taken_out": [plain(out, _INTERNAL) for out in taken]}
        )
    elif taken:
        from kafkascope.cli.terminal import remark

        print(f"Before {day}: " + _goes(dry_run, "removed"))
        _print_taken(taken)
        remark(f"Marts keep the rows of those days until kafkascope marts {quote(where)} rebuilds them.")
    else:
        print(f"Nothing is older than {day}.")
    return 0


def _open(where: str) -> "Lake":
    from kafkascope.extras import need_extras

    need_extras("lake", "lake")
    from kafkascope.lake.home import open_lake

    return open_lake(where)


def _day(text: str) -> "date":
    from datetime import date

    from kafkascope.errors import UsageError

    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(f"--before: '{text}' isn't a day; write it as 2026-11-15") from None


# Fields of a running ingest that only its driver and the lake use.
_INTERNAL = ("token", "given_up")


def _print_info(lake: "LakeInfo") -> None:
    from kafkascope.cli.tables import table
    from kafkascope.cli.terminal import heading, title
    from kafkascope.formatting import count, number, size
    from kafkascope.times import readable

    title(lake.uri, f"{count(lake.recordings, 'recording')} in {count(lake.ingests, 'ingest')}, format {lake.format}")
    rows = [
        (
            stored.name,
            number(stored.rows),
            number(stored.files),
            size(stored.bytes),
            " – ".join(f"{at:%Y-%m-%d %H:%M}" for at in (stored.first_at, stored.last_at) if at is not None),
        )
        for stored in lake.tables
    ]
    if rows:
        print()
        table(rows, ("table", "rows", "files", "size", "times (UTC)"), right=_COUNTS)
    if lake.running:
        heading("Running")
        table(
            [
                (run.ingest_id, f"pid {run.pid} on {run.host}, {run.user}, since {readable(run.started)}")
                for run in lake.running
            ]
        )
    if lake.half_done:
        heading("Left by ingests that died (repeat the ingest to complete them; vacuum removes them)")
        table(
            [
                (
                    half_done.ingest_id,
                    f"{count(half_done.rows, 'row')} in {', '.join(half_done.tables)}, {size(half_done.bytes)}",
                )
                for half_done in lake.half_done
            ]
        )


def _print_vacuum(done: "Vacuumed", dry_run: bool) -> None:
    from kafkascope.formatting import count, size

    if done.ingests:
        print(f"Of ingests that died ({', '.join(done.ingests)}): " + _goes(dry_run, "removed"))
        _print_taken(done.taken_out)
    print(f"{count(done.deleted_files, 'file')} of {size(done.deleted_bytes)} {_goes(dry_run, 'deleted')}")
    if done.waiting_files:
        print(f"{count(done.waiting_files, 'file')} of {size(done.waiting_bytes)} too new to delete")


def _print_taken(taken: "list[RemovedRows] | tuple[RemovedRows, ...]") -> None:
    from kafkascope.cli.tables import table
    from kafkascope.formatting import number, size

    rows = [(out.table, number(out.rows), number(out.files), size(out.bytes)) for out in taken]
    table(rows, ("table", "rows", "files", "size"), right=_COUNTS)


def _goes(dry_run: bool, word: str) -> str:
    return f"would be {word}" if dry_run else word
