"""Commits new files to their table under the name of their ingest, so that a repeated commit adds nothing."""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from kafkascope.errors import InputError
from kafkascope.lake.active import ActiveFile, active_files
from kafkascope.lake.home import DELTA_LOG, Lake
from kafkascope.lake.inside import check_log, inside
from kafkascope.lake.place import readable, reason
from kafkascope.lake.tables import DATE, LakeTable
from kafkascope.lake.write.files import NewFile, discard

# Other processes may commit to the same table at the same time.
RETRIES = 50
# A commit retries if a schema was widened or files were removed in between.
ATTEMPTS = 10
# Compaction and retention share this transaction: of two that began with the same files only one lands. Delta itself
# lets both remove a file, which would duplicate its rows.
MAINTENANCE = "kafkascope-maintenance"
# Ingests share this one in `captures`: of two that began with the same lake one lands, and the other starts over. Both
# may have the same recording, or resume the same unfinished ends.
LANDING = "kafkascope-landing"

# A table to files that leave it and files that replace them.
Change = Callable[[DeltaTable], tuple[list[ActiveFile], list[NewFile]]]


class Overtaken(Exception):
    """Another ingest committed first."""


def open_table(lake: Lake, name: str) -> DeltaTable:
    place = lake.table(name)
    check_log(inside(lake.place, f"{name}/{DELTA_LOG}"))
    with readable(place.uri):
        try:
            return DeltaTable(place.uri, storage_options=lake.storage_options or None)
        except TableNotFoundError as error:
            missing = error
    raise missing


def find_table(lake: Lake, name: str) -> DeltaTable | None:
    """Returns None if the table doesn't exist yet, or another process is creating it."""
    if not lake.has(name):
        return None
    try:
        return open_table(lake, name) if lake.kept is None else _kept(lake, name, lake.kept)
    except TableNotFoundError as error:
        if any(info.base_name.endswith(".json") for info in lake.table(name).child(DELTA_LOG).inside()):
            raise InputError(f"{lake.table(name).uri}: {reason(error)}") from None
        return None


def _kept(lake: Lake, name: str, kept: dict[tuple[str, str], tuple[object, Any]]) -> DeltaTable:
    """A log only grows: as long as it has the same files, the table is the same."""
    log = sorted((info.base_name, info.size, info.mtime_ns) for info in lake.table(name).child(DELTA_LOG).inside())
    known = kept.get((lake.id, name))
    if known is None or known[0] != log:
        # List before opening: a file added in between makes a different table the next time.
        known = kept[lake.id, name] = (log, open_table(lake, name))
    table: DeltaTable = known[1]
    return table


def open_or_create(lake: Lake, table: LakeTable) -> DeltaTable:
    """New tables are empty."""
    try:
        return open_table(lake, table.name)
    except TableNotFoundError:
        pass
    refused = create(lake, table, [])
    try:
        return open_table(lake, table.name)
    except TableNotFoundError as error:
        raise InputError(f"{lake.table(table.name).uri}: {refused or reason(error)}") from None


def create(lake: Lake, table: LakeTable, actions: Sequence[AddAction], *transactions: tuple[str, int]) -> str | None:
    """Returns why the table could not be created. If two processes create one at once, both would otherwise add their
    files: when it retries, Delta's library takes the second creation for an ordinary commit, so retries are off."""
    try:
        create_table_with_add_actions(
            lake.table(table.name).uri,
            Schema.from_arrow(table.schema),
            list(actions),
            mode="error",
            partition_by=table.partition_by,
            storage_options=lake.storage_options or None,
            commit_properties=transaction_properties(*transactions, retries=0),
        )
    except DeltaError as error:
        return reason(error)
    return None


def transaction_version(table: DeltaTable, name: str) -> int | None:
    """Returns None if the table has no such transaction."""
    with readable(table.table_uri):
        return table.transaction_version(name)


def is_in(version: int | None) -> bool:
    """An ingest's transaction is odd while its files are in the table, even once `vacuum` has removed them."""
    return version is not None and version % 2 == 1


def commit(
    lake: Lake,
    table: LakeTable,
    files: Iterable[NewFile],
    transaction: str,
    expected: int | None = None,
    turn: int | None = None,
    change: Change | None = None,
) -> bool:
    """Returns False if that transaction is in the table already. `expected` is the transaction's version when the
    ingest began (`Running.given_up`): if it has changed, the commit is refused. `turn` is that of `LANDING`. `change`
    returns files that leave with the same commit, and files that replace them."""
    actions = [add_action(file) for file in files]
    uri = lake.table(table.name).uri
    for attempt in range(ATTEMPTS):
        try:
            return _commit(lake, table, actions, transaction, expected, turn, change)
        except DeltaError as error:
            # A concurrent commit of the same transaction, or of a wider schema, or a removal.
            if attempt == ATTEMPTS - 1:
                raise InputError(f"{uri}: {reason(error)}") from None
            time.sleep(min(0.02 * 2**attempt, 1))
        except OSError as error:
            raise InputError(f"{uri}: {reason(error)}") from None
    raise AssertionError


def _commit(
    lake: Lake, table: LakeTable, actions: Sequence[AddAction], transaction: str, expected: int | None,
    turn: int | None, change: Change | None,
) -> bool:  # fmt: skip
    unconditional = not expected and turn is None and change is None
    if unconditional and not lake.has(table.name) and create(lake, table, actions, (transaction, 1)) is None:
        return True
    schema = Schema.from_arrow(table.schema)
    delta = open_or_create(lake, table)
    version = transaction_version(delta, transaction)
    if is_in(version):
        return False
    if expected is not None and (version or 0) != expected:
        raise InputError(
            f"{lake.uri}: ingest {transaction} was silent for too long, so `lake vacuum` removed it; run it again"
        )
    if turn is not None and (transaction_version(delta, LANDING) or 0) != turn:
        raise Overtaken
    if _lacks(lake.table(table.name).uri, delta.schema(), schema):
        # An append with a wider schema would silently drop the new columns.
        delta.alter.add_columns(list(schema.fields))
    removed, added = change(delta) if change is not None else ([], [])
    try:
        delta.create_write_transaction(
            [*removals(removed, data_change=True), *(add_action(file) for file in added), *actions],
            mode="append",
            schema=delta.schema(),
            partition_by=table.partition_by,
            commit_properties=transaction_properties(
                (transaction, (version or 0) + 1), *(((LANDING, turn + 1),) if turn is not None else ()),
                retries=0 if removed else RETRIES,
            ),
        )  # fmt: skip
    except BaseException:
        discard(lake, added)
        raise
    return True


def removals(files: Iterable[ActiveFile], *, data_change: bool) -> list[RemoveAction]:
    now = int(time.time() * 1000)
    return [
        RemoveAction(file.path, data_change, now, file.size, {DATE: file.date.isoformat()} if file.date else {})
        for file in files
    ]


def maintain(
    table: DeltaTable,
    removed: Iterable[ActiveFile],
    added: Iterable[NewFile] = (),
    *,
    data_change: bool,
    transactions: Iterable[tuple[str, int]] = (),
) -> bool:
    """Removes files and adds others, in one commit. Returns False, without a change, if one of the files is gone, or if
    other maintenance or one of the transactions came first; then look at the table again."""
    gone = list(removed)
    actions: list[AddAction | RemoveAction] = [*removals(gone, data_change=data_change)]
    actions += [add_action(file, data_change=data_change) for file in added]
    carried = ((MAINTENANCE, (transaction_version(table, MAINTENANCE) or 0) + 1), *transactions)
    known = {name: transaction_version(table, name) for name, _ in carried}
    try:
        for _ in range(RETRIES):
            try:
                table.create_write_transaction(
                    actions,
                    mode="append",
                    schema=table.schema(),
                    partition_by=table.metadata().partition_columns,
                    commit_properties=transaction_properties(*carried, retries=0),
                )
            except CommitFailedError:
                # Other processes commit too. If the library retried, it would remove a file that another tool has
                # merged meanwhile, and the rows of that file would stay.
                table.update_incremental()
                if any(transaction_version(table, name) != version for name, version in known.items()):
                    return False
                if gone and not {file.path for file in gone} <= {file.path for file in active_files(table)}:
                    return False
            else:
                return True
    except (DeltaError, OSError) as error:
        raise InputError(f"{table.table_uri}: {reason(error)}") from None
    return False


def transaction_properties(*transactions: tuple[str, int], retries: int = RETRIES) -> CommitProperties:
    """With `retries` 0 the commit applies to the version that the table was opened with, or fails."""
    committed = [Transaction(name, version) for name, version in transactions]
    return CommitProperties(app_transactions=committed, max_commit_retries=retries)


def _lacks(uri: str, present: Schema, expected: Schema) -> bool:
    """If the table has to be widened. A column that has another type can't be."""
    known, needed = _types(present), _types(expected)
    for path, type_ in needed.items():
        if known.get(path, type_) != type_:
            raise InputError(
                f"{uri}: column {path} is {known[path]} in the lake, {type_} in this kafkascope; ingest into a new lake"
            )
    return not known.keys() >= needed.keys()


def _types(schema: Schema) -> dict[str, str]:
    """Each column's path to its type, nested ones too."""
    types: dict[str, str] = {}

    def walk(node: Any, path: str) -> None:
        if isinstance(node, str):
            types[path] = node
            return
        types[path] = node["type"]
        for field in node.get("fields", ()):
            walk(field["type"], f"{path}.{field['name']}".lstrip("."))
        if "elementType" in node:
            walk(node["elementType"], f"{path}[]")

    walk(json.loads(schema.to_json()), "")
    return types


def add_action(file: NewFile, *, data_change: bool = True) -> AddAction:
    return AddAction(
        path=file.path,
        size=file.size,
        partition_values={DATE: file.date} if file.date else {},
        modification_time=int(time.time() * 1000),
        data_change=data_change,
        stats=file.stats,
    )
