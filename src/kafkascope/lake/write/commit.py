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

# Others may commit to the same table at the same time.
RETRIES = 50
# A wider schema or a removal in between makes a commit look again.
ATTEMPTS = 10
# Compaction and retention carry this transaction: of two that began with the same files only one lands. Delta itself
# lets both remove a file, and its rows would be there twice.
MAINTENANCE = "kafkascope-maintenance"
# Ingests carry this one in `captures`: of two that began with the same lake one lands, and the other looks again. Both
# may have the same recording, or go on from the same unfinished ends.
LANDING = "kafkascope-landing"

# A table to files that leave it and those that take their place.
Change = Callable[[DeltaTable], tuple[list[ActiveFile], list[NewFile]]]


class Overtaken(Exception):
    """Another ingest was first."""


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
    """None where it is not there yet, or another makes it just now."""
    if not lake.has(name):
        return None
    try:
        return open_table(lake, name) if lake.kept is None else _kept(lake, name, lake.kept)
    except TableNotFoundError as error:
        if any(info.base_name.endswith(".json") for info in lake.table(name).child(DELTA_LOG).inside()):
            raise InputError(f"{lake.table(name).uri}: {reason(error)}") from None
        return None


def _kept(lake: Lake, name: str, kept: dict[tuple[str, str], tuple[object, Any]]) -> DeltaTable:
    """A log is only ever added to: as long as it has the same files, the table is the same."""
    log = sorted((info.base_name, info.size, info.mtime_ns) for info in lake.table(name).child(DELTA_LOG).inside())
    known = kept.get((lake.id, name))
    if known is None or known[0] != log:
        # Listed before it is opened: what comes in between makes it another the next time.
        known = kept[lake.id, name] = (log, open_table(lake, name))
    table: DeltaTable = known[1]
    return table


def open_or_create(lake: Lake, table: LakeTable) -> DeltaTable:
    """Tables begin empty. Two that begin one at once would otherwise both put their files in: Delta's library takes the
    second creation for another commit when it tries again, so it may not."""
    try:
        return open_table(lake, table.name)
    except TableNotFoundError:
        pass
    uri, refused = lake.table(table.name).uri, ""
    try:
        create_table_with_add_actions(
            uri,
            Schema.from_arrow(table.schema),
            [],
            mode="error",
            partition_by=table.partition_by,
            storage_options=lake.storage_options or None,
            commit_properties=CommitProperties(max_commit_retries=0),
        )
    except DeltaError as error:
        refused = reason(error)
    try:
        return open_table(lake, table.name)
    except TableNotFoundError as error:
        raise InputError(f"{uri}: {refused or reason(error)}") from None


def transaction_version(table: DeltaTable, name: str) -> int | None:
    """None where the table has no such transaction."""
    with readable(table.table_uri):
        return table.transaction_version(name)


def is_in(version: int | None) -> bool:
    """An ingest's transaction is odd while its files are in the table, even once `vacuum` has taken them out again."""
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
    """False where that transaction is in the table already. `expected` is the transaction's version that the ingest
    began with (`Running.given_up`): where it is another now, the commit is refused. `turn` is that of `LANDING`.
    `change` returns files that leave with the same commit, and those that take their place."""
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
    schema = Schema.from_arrow(table.schema)
    delta = open_or_create(lake, table)
    version = transaction_version(delta, transaction)
    if is_in(version):
        return False
    if expected is not None and (version or 0) != expected:
        raise InputError(
            f"{lake.uri}: ingest {transaction} was silent for so long that `lake vacuum` gave it up; run it again"
        )
    if turn is not None and (transaction_version(delta, LANDING) or 0) != turn:
        raise Overtaken
    if _lacks(lake.table(table.name).uri, delta.schema(), schema):
        # An append with a wider schema would drop the new columns without a word.
        delta.alter.add_columns(list(schema.fields))
    removed, added = change(delta) if change is not None else ([], [])
    try:
        delta.create_write_transaction(
            [*_removals(removed, data_change=True), *(add_action(file) for file in added), *actions],
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


def _removals(files: Iterable[ActiveFile], *, data_change: bool) -> list[RemoveAction]:
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
    """Takes files out and others in, in one commit. False where one of the files is gone, or another's maintenance came
    between, or one of the transactions: then nothing is done, and the table has to be looked at again."""
    gone = list(removed)
    actions: list[AddAction | RemoveAction] = [*_removals(gone, data_change=data_change)]
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
                # Others commit too. Tried again by the library, a file that another tool has merged in the meantime
                # would be removed a second time, and its rows stay.
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
    """With `retries` 0 the commit is of the version that the table was opened with, or none."""
    committed = [Transaction(name, version) for name, version in transactions]
    return CommitProperties(app_transactions=committed, max_commit_retries=retries)


def _lacks(uri: str, present: Schema, expected: Schema) -> bool:
    """Whether the table has to be widened. A column that is there in another type cannot be."""
    known, needed = _types(present), _types(expected)
    for path, type_ in needed.items():
        if known.get(path, type_) != type_:
            raise InputError(
                f"{uri}: column {path} is {known[path]} there, {type_} in this kafkascope; ingest into a new lake"
            )
    return not known.keys() >= needed.keys()


def _types(schema: Schema) -> dict[str, str]:
    """Every column's path to its type, nested ones too."""
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
