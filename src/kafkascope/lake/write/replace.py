"""Replaces all files of a table by new ones in one commit."""

from collections.abc import Iterable

from deltalake import Schema
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, RemoveAction

from kafkascope.errors import InputError
from kafkascope.lake.home import Lake
from kafkascope.lake.place import reason
from kafkascope.lake.tables import LakeTable
from kafkascope.lake.write.commit import (
    ATTEMPTS,
    MAINTENANCE,
    add_action,
    open_or_create,
    transaction_properties,
    transaction_version,
)
from kafkascope.lake.write.files import NewFile


def replace(lake: Lake, table: LakeTable, files: Iterable[NewFile]) -> None:
    """Readers see the table before or after. Of two replacements at once, the later one stays, whole."""
    actions: list[AddAction | RemoveAction] = [add_action(file) for file in files]
    problem = ""
    for _ in range(ATTEMPTS):
        try:
            _replace(lake, table, actions)
        except DeltaError as error:
            problem = reason(error)
        except OSError as error:
            raise InputError(f"{lake.table(table.name).uri}: {reason(error)}") from None
        else:
            return
    raise InputError(f"{lake.table(table.name).uri}: {problem}")


def _replace(lake: Lake, table: LakeTable, actions: list[AddAction | RemoveAction]) -> None:
    delta = open_or_create(lake, table)
    turn = (transaction_version(delta, MAINTENANCE) or 0) + 1
    delta.create_write_transaction(
        actions,
        mode="overwrite",
        schema=Schema.from_arrow(table.schema),
        partition_by=table.partition_by,
        # Files that another tool merges at the same time must not stay.
        commit_properties=transaction_properties((MAINTENANCE, turn), retries=0),
    )
