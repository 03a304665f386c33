"""The lake browser's questions: every row once and in order, filters as a plain scan has them, little of it opened."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from kafkascope.errors import InputError, UsageError
from kafkascope.lake.home import Lake
from kafkascope.lake.read import browse
from kafkascope.lake.read.browse import ExchangeFilters, Slice, bodies, exchange, exchanges, parse_place, place_of
from kafkascope.lake.read.time_ordered import Place, TimedFile, count_rows
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.lake.tables import table_named
from kafkascope.lake.upkeep.compact import compact
from kafkascope.lake.write import files as files_module
from kafkascope.lake.write.commit import commit
from kafkascope.times import microseconds_of
from tests.lake.build import CAPTURES, EXCHANGES, NOON, capture, days, half_land, land, rows, written

SECOND = timedelta(seconds=1)
APIS = ("Fetch", "ShareFetch", "Produce", "Heartbeat")
STATUSES = ("answered", "answered", "answered", "unanswered")


def row(number: int) -> dict[str, Any]:
    """Times come in disorder, twice each; some answers have no request, and some errors are rare."""
    at = NOON + (number * 7919 % 150) * SECOND
    alone = number % 53 == 0
    error = 6 if number % 11 == 0 else 0
    return {
        "exchange_id": f"{number * 2654435761 % 2**32:08x}",
        "request_at": None if alone else at,
        "response_at": at + SECOND if alone or number % 4 else None,
        "api": APIS[number % 4],
        "api_version": 1,
        "client_id": None if number % 17 == 0 else f"app_{number % 9}",
        "error_code": None if number % 4 == 3 else error,
        "error": "NOT_LEADER_OR_FOLLOWER" if error and number % 4 != 3 else None,
        "latency_us": number * 10 if number % 4 else None,
        "status": STATUSES[number % 4],
    }


ROWS = [row(number) for number in range(300)]


def time_of(row: dict[str, Any]) -> datetime:
    at: datetime = row["request_at"] or row["response_at"]
    return at


@pytest.fixture
def filled(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """In three ingests of several small row groups."""
    monkeypatch.setattr(files_module, "GROUP_ROWS", 32)
    monkeypatch.setattr(files_module, "MOST_DISORDER_US", 10**15)
    for ingest in range(3):
        land(lake, f"i{ingest}", rows(EXCHANGES, ROWS[ingest::3]))
    return lake


def pages(lake: Lake, filters: ExchangeFilters, count: int) -> Iterator[Slice]:
    after: Place | None = None
    while True:
        page = exchanges(lake, filters, after, count)
        yield page
        if page.after is None:
            return
        after = parse_place(str(page.after))


def ids(lake: Lake, filters: ExchangeFilters, count: int = 64) -> list[str]:
    return [row["exchange_id"] for page in pages(lake, filters, count) for row in page.rows]


def in_order(listed: list[dict[str, Any]]) -> list[str]:
    return [row["exchange_id"] for row in sorted(listed, key=lambda row: (time_of(row), row["exchange_id"]))]


@pytest.mark.parametrize("count", [7, 100, 300, 1000])
def test_every_row_comes_once_and_in_order_over_all_pages(filled: Lake, count: int) -> None:
    assert ids(filled, ExchangeFilters(), count) == in_order(ROWS)


def test_pages_of_one_row_come_to_the_end_too(filled: Lake) -> None:
    expected = [row for row in ROWS if row["api"] == "Fetch" and row["error_code"]]
    assert ids(filled, ExchangeFilters(api="Fetch", error="any"), 1) == in_order(expected)


@pytest.mark.parametrize("count", [1, 2, 4, 12])
def test_rows_of_one_moment_in_several_files_come_by_their_ids(lake: Lake, count: int) -> None:
    rows_of_noon = [{"exchange_id": f"{number:02x}", "request_at": NOON} for number in range(12)]
    for ingest in range(3):
        land(lake, f"i{ingest}", rows(EXCHANGES, rows_of_noon[ingest::3]))
    assert ids(lake, ExchangeFilters(), count) == [row["exchange_id"] for row in rows_of_noon]


def test_a_page_that_is_not_the_last_is_full(filled: Lake) -> None:
    assert [len(page.rows) for page in pages(filled, ExchangeFilters(), 90)] == [90, 90, 90, 30]
    assert [len(page.rows) for page in pages(filled, ExchangeFilters(), 150)] == [150, 150]


def test_merged_files_give_the_same_pages(filled: Lake) -> None:
    before = ids(filled, ExchangeFilters())
    assert compact(filled, most_small=1)
    assert ids(filled, ExchangeFilters()) == before


FILTERS: dict[str, tuple[ExchangeFilters, Callable[[dict[str, Any]], bool]]] = {
    "api": (ExchangeFilters(api="ShareFetch"), lambda row: row["api"] == "ShareFetch"),
    "no such api": (ExchangeFilters(api="sharefetch"), lambda _: False),
    "client": (ExchangeFilters(client="app_3"), lambda row: row["client_id"] == "app_3"),
    "client, wildcard": (ExchangeFilters(client="app*"), lambda row: fnmatchcase(row["client_id"] or "-", "app*")),
    "client, one letter": (ExchangeFilters(client="*_?"), lambda row: fnmatchcase(row["client_id"] or "-", "*_?")),
    "client, like SQL": (ExchangeFilters(client="app%3*"), lambda _: False),
    "client, _ is no wildcard": (ExchangeFilters(client="a_p_3*"), lambda _: False),
    "error": (ExchangeFilters(error="NOT_LEADER_OR_FOLLOWER"), lambda row: row["error"] is not None),
    "error, any": (ExchangeFilters(error="any"), lambda row: bool(row["error_code"])),
    "error, unknown": (ExchangeFilters(error="NO_SUCH_ERROR"), lambda _: False),
    "status": (ExchangeFilters(status="unanswered"), lambda row: row["status"] == "unanswered"),
    "since": (
        ExchangeFilters(since=microseconds_of(NOON + 60 * SECOND)),
        lambda row: time_of(row) >= NOON + 60 * SECOND,
    ),
    "until": (
        ExchangeFilters(until=microseconds_of(NOON + 60 * SECOND)),
        lambda row: time_of(row) < NOON + 60 * SECOND,
    ),
    "slow": (ExchangeFilters(slower_us=1_500), lambda row: (row["latency_us"] or -1) >= 1_500),
    "all": (
        ExchangeFilters(
            "Fetch", "app*", "", "any", "answered", microseconds_of(NOON), microseconds_of(NOON + 120 * SECOND), 40
        ),
        lambda row: (
            row["api"] == "Fetch"
            and (row["client_id"] or "").startswith("app")
            and bool(row["error_code"])
            and time_of(row) < NOON + 120 * SECOND
            and (row["latency_us"] or 0) >= 40
        ),
    ),
}


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_gives_what_a_plain_scan_gives(filled: Lake, name: str) -> None:
    filters, holds = FILTERS[name]
    expected = in_order([row for row in ROWS if holds(row)])
    assert ids(filled, filters, 30) == expected
    assert {page.total for page in pages(filled, filters, 100)} == {len(expected)}


def test_a_total_is_counted_once_until_files_come(filled: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []

    def counting(files: Any, row_filter: Any) -> int:
        counted.append(count_rows(files, row_filter))
        return counted[-1]

    monkeypatch.setattr(browse, "count_rows", counting)
    fetches = ExchangeFilters(api="Fetch")
    of_api = sum(row["api"] == "Fetch" for row in ROWS)
    assert [page.total for page in pages(filled, fetches, 10)] == [of_api] * len(list(pages(filled, fetches, 10)))
    assert counted == [of_api]
    more = [row | {"exchange_id": f"more{number}"} for number, row in enumerate(ROWS) if row["api"] == "Fetch"]
    land(filled, "i9", rows(EXCHANGES, more))
    assert exchanges(filled, fetches, None, 10).total == 2 * of_api
    assert counted == [of_api, 2 * of_api]


def test_totals_that_are_kept_are_bounded(filled: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """MAX_KEPT_TOTALS"""
    monkeypatch.setattr(browse, "MAX_KEPT_TOTALS", 3)
    monkeypatch.setattr(browse, "_TOTALS", {})
    for slower in range(5):
        exchanges(filled, ExchangeFilters(slower_us=slower), None, 1)
    assert len(browse._TOTALS) == 3


def test_answers_without_a_request_stand_at_their_own_time(filled: Lake) -> None:
    alone = [row for page in pages(filled, ExchangeFilters(), 100) for row in page.rows if row["request_at"] is None]
    assert len(alone) == len([row for row in ROWS if row["request_at"] is None]) > 4
    row = alone[3]
    assert exchange(filled, row["exchange_id"], place_of(row).at) == exchange(filled, row["exchange_id"])


def test_rows_without_any_time_and_of_no_calendar_come_once(lake: Lake) -> None:
    table = rows(EXCHANGES, [{"exchange_id": name} for name in ("none", "before", "behind")])
    at = pa.array([None, -(2**62), 2**62], pa.int64()).cast(EXCHANGES.schema.field("request_at").type)
    land(lake, "i1", table.set_column(table.schema.get_field_index("request_at"), "request_at", at))
    land(lake, "i2", rows(EXCHANGES, [{"exchange_id": "now", "request_at": NOON}]))
    for count in (1, 2, 10):
        assert ids(lake, ExchangeFilters(), count) == ["before", "none", "now", "behind"]
    known = exchange(lake, "behind")
    assert known is not None and known["request_at"] is None


@pytest.mark.parametrize(
    "text", ["", "-", "5", "x-abc", "5-", "5-a/b", "5-<b>", "99999999999999999999-a", "٣-a", "1e3-a", "9" * 5000 + "-a"]
)
def test_what_is_no_place_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError, match="isn't a place in a list of exchanges") as caught:
        parse_place(text)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 200


def test_a_place_reads_back() -> None:
    for place in (Place(0, "ab12"), Place(1_794_744_000_000_000, "c0511e2113b124aead24e186"), Place(-5, "a")):
        assert parse_place(str(place)) == place


def test_an_exchange_is_found_with_its_time_with_a_wrong_one_and_without(filled: Lake) -> None:
    known = ROWS[123]
    at = microseconds_of(time_of(known))
    for moment in (at, None, at + 5, 0, 2**62):
        known_row = exchange(filled, known["exchange_id"], moment)
        assert known_row is not None and known_row["api"] == known["api"]
    assert exchange(filled, "00") is None
    assert exchange(filled, "00", at) is None


def test_a_lake_without_exchanges_has_an_empty_page(lake: Lake) -> None:
    assert exchanges(lake, ExchangeFilters(), None, 10) == Slice([], None, 0)
    assert exchanges(lake, ExchangeFilters(group="g"), None, 10) == Slice([], None, 0)
    assert exchange(lake, "a") is None


def test_a_half_done_ingest_shows_nothing_until_it_lands(lake: Lake) -> None:
    land(lake, "i1", rows(EXCHANGES, ROWS[:10]))
    half_land(lake, "i2", rows(EXCHANGES, ROWS[10:20]))
    assert ids(lake, ExchangeFilters()) == in_order(ROWS[:10])
    assert exchange(lake, ROWS[15]["exchange_id"]) is None
    commit(lake, CAPTURES, written(lake, "i2", CAPTURES, capture("i2")), "i2")
    assert ids(lake, ExchangeFilters()) == in_order(ROWS[:20])


HEARTBEATS, FETCHES = table_named("heartbeat_request"), table_named("share_fetch_request")


@pytest.fixture
def grouped(filled: Lake) -> Lake:
    """Every heartbeat is of one group, every third share fetch of it too."""
    of_groups = {
        HEARTBEATS: [row | {"group_id": "payments"} for row in ROWS if row["api"] == "Heartbeat" and row["request_at"]],
        FETCHES: [
            row | {"group_id": "payments" if number % 3 == 0 else "others"}
            for number, row in enumerate(ROWS)
            if row["api"] == "ShareFetch" and row["request_at"]
        ],
    }
    for table, of_table in of_groups.items():
        kept = [{name: row[name] for name in row if name in table.schema.names} for row in of_table]
        commit(filled, table, written(filled, "i0", table, rows(table, kept)), "i0")
    return filled


def named(row: dict[str, Any]) -> bool:
    number = ROWS.index(row)
    is_fetch = row["api"] == "ShareFetch" and number % 3 == 0
    return row["request_at"] is not None and (row["api"] == "Heartbeat" or is_fetch)


@pytest.mark.parametrize(
    ("filters", "holds"),
    [
        (ExchangeFilters(group="payments"), lambda _: True),
        (ExchangeFilters(group="payments", api="Heartbeat"), lambda row: row["api"] == "Heartbeat"),
        (ExchangeFilters(group="payments", api="Produce"), lambda _: False),
        (ExchangeFilters(group="payments", client="app_?"), lambda row: row["client_id"] is not None),
        (ExchangeFilters(group="payments", error="any"), lambda row: bool(row["error_code"])),
        (ExchangeFilters(group="payments", error="NOT_LEADER_OR_FOLLOWER"), lambda row: row["error"] is not None),
        (ExchangeFilters(group="payments", status="unanswered"), lambda row: row["status"] == "unanswered"),
        (ExchangeFilters(group="payments", slower_us=2_000), lambda row: (row["latency_us"] or 0) >= 2_000),
        (
            ExchangeFilters(group="payments", since=microseconds_of(NOON + SECOND)),
            lambda row: time_of(row) >= NOON + SECOND,
        ),
        (ExchangeFilters(group="payment"), lambda _: False),
    ],
)  # fmt: skip
def test_exchanges_of_a_group_are_those_whose_requests_name_it(
    grouped: Lake, monkeypatch: pytest.MonkeyPatch, filters: ExchangeFilters, holds: Callable[[dict[str, Any]], bool]
) -> None:
    expected = in_order(
        [candidate for candidate in ROWS if filters.group == "payments" and named(candidate) and holds(candidate)]
    )
    assert ids(grouped, filters, 20) == expected
    monkeypatch.setattr("kafkascope.lake.read.browse._LOOKED_UP", 3)
    monkeypatch.setattr("kafkascope.lake.read.browse._MORE", 2)
    assert ids(grouped, filters, 20) == expected


def test_bodies_of_an_exchange_are_its_own_rows(grouped: Lake) -> None:
    known = next(row for row in ROWS if row["api"] == "ShareFetch" and named(row))
    whole = exchange(grouped, known["exchange_id"])
    assert whole is not None
    bodies_of = bodies(grouped, whole)
    assert bodies_of.keys() == {"share_fetch_request"}
    assert bodies_of["share_fetch_request"] is not None
    assert bodies_of["share_fetch_request"]["group_id"] == "payments"
    assert bodies_of["share_fetch_request"]["exchange_id"] == known["exchange_id"]


def test_a_page_opens_few_row_groups(filled: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    whole = TimedFile.read

    def counted(self: TimedFile, columns: Any) -> pa.Table:
        read.append(self.fragment.path)
        return whole(self, columns)

    for day in range(20):
        later = [row | {"request_at": NOON + days(day + 2), "exchange_id": f"d{day}"} for row in ROWS[:1]]
        land(filled, f"j{day}", rows(EXCHANGES, later))
    monkeypatch.setattr(TimedFile, "read", counted)
    exchanges(
        filled,
        ExchangeFilters(since=microseconds_of(NOON + days(10)), until=microseconds_of(NOON + days(11))),
        None,
        10,
    )
    assert len(set(read)) == 1
    read.clear()
    exchange(filled, "d5", microseconds_of(NOON + days(7)))
    assert len(set(read)) == 1
    read.clear()
    exchanges(filled, ExchangeFilters(), Place(microseconds_of(NOON + days(15)), "0"), 2)
    assert len(set(read)) <= 3


@pytest.mark.parametrize("path", ["../../../secret.parquet", "/etc/passwd", "file:///etc/passwd", "a/../../b.parquet"])
def test_a_log_that_names_a_file_outside_of_its_table_is_refused(lake: Lake, tmp_path: Path, path: str) -> None:
    land(lake, "i1", rows(EXCHANGES, ROWS[:3]))
    secret = tmp_path / "secret.parquet"
    ds.write_dataset(rows(EXCHANGES, ROWS[3:4]), tmp_path / "out", format="parquet")
    next((tmp_path / "out").iterdir()).rename(secret)
    log = Path(lake.table("exchanges").child("_delta_log").path)
    newest = max(log.glob("*.json"))
    text = newest.read_text()
    good = next(line for line in text.splitlines() if '"add"' in line)
    name = good.split('"path":"')[1].split('"')[0]
    newest.write_text(text.replace(name, path))
    for call in (lambda: exchanges(lake, ExchangeFilters(), None, 10), lambda: dataset(lake, "exchanges").to_table()):
        with pytest.raises(InputError, match="outside its folder") as caught:
            call()
        assert "\n" not in str(caught.value)
