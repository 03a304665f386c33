"""Replaces files of a table by new ones in one commit: all of them, or those that an increment of the marts
rebuilds."""

from collections.abc import Callable, Iterable

from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction

from kafkascope.errors import InputError
from kafkascope.lake.active import ActiveFile, active_files
from kafkascope.lake.home import Lake
from kafkascope.lake.place import reason
from kafkascope.lake.tables import LakeTable
from kafkascope.lake.write.commit import (
    ATTEMPTS,
    MAINTENANCE,
    Overtaken,
    add_action,
    create,
    open_or_create,
    removals,
    transaction_properties,
    transaction_version,
)
from kafkascope.lake.write.files import NewFile

# Which build of the marts a table is of.
BUILD = "kafkascope-marts"


def replace(lake: Lake, table: LakeTable, files: Iterable[NewFile], build: int | None = None) -> None:
    """Readers see the table before or after. Of two replacements at once, the later one stays, whole. `build` is the
    number of this build of the marts."""
    actions = [add_action(file) for file in files]
    _retried(lake, table, lambda: _replace(lake, table, actions, build))


def rewrite(
    lake: Lake,
    table: LakeTable,
    leaves: Callable[[ActiveFile], bool],
    files: Iterable[NewFile],
    builds: tuple[int, int],
) -> None:
    """Takes out the files that `leaves` chooses and adds others, in one commit. `builds` are the number of the build
    that the table is expected to be of, and of the new one; `Overtaken` if it is of another."""
    added = [add_action(file) for file in files]

    def commit() -> None:
        delta = open_or_create(lake, table)
        if build_of(delta) != builds[0]:
            raise Overtaken
        removed = removals((file for file in active_files(delta) if leaves(file)), data_change=True)
        delta.create_write_transaction(
            [*removed, *added],
            mode="append",
            schema=delta.schema(),
            partition_by=table.partition_by,
            commit_properties=transaction_properties(_turn(delta), (BUILD, builds[1]), retries=0),
        )

    _retried(lake, table, commit)


def build_of(delta: DeltaTable) -> int:
    """0 for a table that no numbered build has made."""
    return transaction_version(delta, BUILD) or 0


def _retried(lake: Lake, table: LakeTable, commit: Callable[[], None]) -> None:
    problem = ""
    for _ in range(ATTEMPTS):
        try:
            commit()
        except DeltaError as error:
            problem = reason(error)
        except OSError as error:
            raise InputError(f"{lake.table(table.name).uri}: {reason(error)}") from None
        else:
            return
    raise InputError(f"{lake.table(table.name).uri}: {problem}")


def _turn(delta: DeltaTable) -> tuple[str, int]:
    return MAINTENANCE, (transaction_version(delta, MAINTENANCE) or 0) + 1


def _replace(lake: Lake, table: LakeTable, actions: list[AddAction], build: int | None) -> None:
    builds = () if build is None else ((BUILD, build),)
    if not lake.has(table.name) and create(lake, table, actions, (MAINTENANCE, 1), *builds) is None:
        return
    delta = open_or_create(lake, table)
    delta.create_write_transaction(
        [*actions],
        mode="overwrite",
        schema=Schema.from_arrow(table.schema),
        partition_by=table.partition_by,
        # Files that another tool merges at the same time must not stay.
        commit_properties=transaction_properties(_turn(delta), *builds, retries=0),
    )
