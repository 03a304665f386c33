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
from kafkascope.lake.read.browse import ExchangeFilters, Slice, bodies, exchange, exchanges, parse_place, place_of
from kafkascope.lake.read.time_ordered import Place, TimedFile, microseconds
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.lake.tables import table_named
from kafkascope.lake.upkeep.compact import compact
from kafkascope.lake.write import files as files_module
from kafkascope.lake.write.commit import commit
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


def time_of(one: dict[str, Any]) -> datetime:
    at: datetime = one["request_at"] or one["response_at"]
    return at


@pytest.fixture
def filled(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """In three ingests of several small row groups."""
    monkeypatch.setattr(files_module, "GROUP_ROWS", 32)
    monkeypatch.setattr(files_module, "MOST_DISORDER_US", 10**15)
    for ingest in range(3):
        land(lake, f"i{ingest}", rows(EXCHANGES, ROWS[ingest::3]))
    return lake


def pages(lake: Lake, asked: ExchangeFilters, count: int) -> Iterator[Slice]:
    after: Place | None = None
    while True:
        found = exchanges(lake, asked, after, count)
        yield found
        if found.after is None:
            return
        after = parse_place(str(found.after))


def ids(lake: Lake, asked: ExchangeFilters, count: int = 64) -> list[str]:
    return [one["exchange_id"] for found in pages(lake, asked, count) for one in found.rows]


def in_order(given: list[dict[str, Any]]) -> list[str]:
    return [one["exchange_id"] for one in sorted(given, key=lambda one: (time_of(one), one["exchange_id"]))]


@pytest.mark.parametrize("count", [7, 100, 300, 1000])
def test_every_row_comes_once_and_in_order_over_all_pages(filled: Lake, count: int) -> None:
    assert ids(filled, ExchangeFilters(), count) == in_order(ROWS)


def test_pages_of_one_row_come_to_the_end_too(filled: Lake) -> None:
    wanted = [one for one in ROWS if one["api"] == "Fetch" and one["error_code"]]
    assert ids(filled, ExchangeFilters(api="Fetch", error="any"), 1) == in_order(wanted)


@pytest.mark.parametrize("count", [1, 2, 4, 12])
def test_rows_of_one_moment_in_several_files_come_by_their_ids(lake: Lake, count: int) -> None:
    given = [{"exchange_id": f"{number:02x}", "request_at": NOON} for number in range(12)]
    for ingest in range(3):
        land(lake, f"i{ingest}", rows(EXCHANGES, given[ingest::3]))
    assert ids(lake, ExchangeFilters(), count) == [one["exchange_id"] for one in given]


def test_a_page_that_is_not_the_last_is_full(filled: Lake) -> None:
    assert [len(one.rows) for one in pages(filled, ExchangeFilters(), 90)] == [90, 90, 90, 30]
    assert [len(one.rows) for one in pages(filled, ExchangeFilters(), 150)] == [150, 150]


def test_merged_files_give_the_same_pages(filled: Lake) -> None:
    before = ids(filled, ExchangeFilters())
    assert compact(filled, most_small=1)
    assert ids(filled, ExchangeFilters()) == before


FILTERS: dict[str, tuple[ExchangeFilters, Callable[[dict[str, Any]], bool]]] = {
    "api": (ExchangeFilters(api="ShareFetch"), lambda one: one["api"] == "ShareFetch"),
    "no such api": (ExchangeFilters(api="sharefetch"), lambda _: False),
    "client": (ExchangeFilters(client="app_3"), lambda one: one["client_id"] == "app_3"),
    "client, wildcard": (ExchangeFilters(client="app*"), lambda one: fnmatchcase(one["client_id"] or "-", "app*")),
    "client, one letter": (ExchangeFilters(client="*_?"), lambda one: fnmatchcase(one["client_id"] or "-", "*_?")),
    "client, like SQL": (ExchangeFilters(client="app%3*"), lambda _: False),
    "client, _ is no wildcard": (ExchangeFilters(client="a_p_3*"), lambda _: False),
    "error": (ExchangeFilters(error="NOT_LEADER_OR_FOLLOWER"), lambda one: one["error"] is not None),
    "error, any": (ExchangeFilters(error="any"), lambda one: bool(one["error_code"])),
    "error, unknown": (ExchangeFilters(error="NO_SUCH_ERROR"), lambda _: False),
    "status": (ExchangeFilters(status="unanswered"), lambda one: one["status"] == "unanswered"),
    "since": (ExchangeFilters(since=microseconds(NOON + 60 * SECOND)), lambda one: time_of(one) >= NOON + 60 * SECOND),
    "until": (ExchangeFilters(until=microseconds(NOON + 60 * SECOND)), lambda one: time_of(one) < NOON + 60 * SECOND),
    "slow": (ExchangeFilters(slower_us=1_500), lambda one: (one["latency_us"] or -1) >= 1_500),
    "all": (
        ExchangeFilters(
            "Fetch", "app*", "", "any", "answered", microseconds(NOON), microseconds(NOON + 120 * SECOND), 40
        ),
        lambda one: (
            one["api"] == "Fetch"
            and (one["client_id"] or "").startswith("app")
            and bool(one["error_code"])
            and time_of(one) < NOON + 120 * SECOND
            and (one["latency_us"] or 0) >= 40
        ),
    ),
}


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_gives_what_a_plain_scan_gives(filled: Lake, name: str) -> None:
    asked, holds = FILTERS[name]
    assert ids(filled, asked, 30) == in_order([one for one in ROWS if holds(one)])


def test_answers_without_a_request_stand_at_their_own_time(filled: Lake) -> None:
    alone = [one for found in pages(filled, ExchangeFilters(), 100) for one in found.rows if one["request_at"] is None]
    assert len(alone) == len([one for one in ROWS if one["request_at"] is None]) > 4
    one = alone[3]
    assert exchange(filled, one["exchange_id"], place_of(one).at) == exchange(filled, one["exchange_id"])


def test_rows_without_any_time_and_of_no_calendar_come_once(lake: Lake) -> None:
    table = rows(EXCHANGES, [{"exchange_id": name} for name in ("none", "before", "behind")])
    at = pa.array([None, -(2**62), 2**62], pa.int64()).cast(EXCHANGES.schema.field("request_at").type)
    land(lake, "i1", table.set_column(table.schema.get_field_index("request_at"), "request_at", at))
    land(lake, "i2", rows(EXCHANGES, [{"exchange_id": "now", "request_at": NOON}]))
    for count in (1, 2, 10):
        assert ids(lake, ExchangeFilters(), count) == ["before", "none", "now", "behind"]
    found = exchange(lake, "behind")
    assert found is not None and found["request_at"] is None


@pytest.mark.parametrize(
    "text", ["", "-", "5", "x-abc", "5-", "5-a/b", "5-<b>", "99999999999999999999-a", "٣-a", "1e3-a", "9" * 5000 + "-a"]
)
def test_what_is_no_place_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError, match="is no place in a list of exchanges") as caught:
        parse_place(text)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 200


def test_a_place_reads_back() -> None:
    for place in (Place(0, "ab12"), Place(1_794_744_000_000_000, "c0511e2113b124aead24e186"), Place(-5, "a")):
        assert parse_place(str(place)) == place


def test_an_exchange_is_found_with_its_time_with_a_wrong_one_and_without(filled: Lake) -> None:
    known = ROWS[123]
    at = microseconds(time_of(known))
    for given in (at, None, at + 5, 0, 2**62):
        found = exchange(filled, known["exchange_id"], given)
        assert found is not None and found["api"] == known["api"]
    assert exchange(filled, "00") is None
    assert exchange(filled, "00", at) is None


def test_a_lake_without_exchanges_has_an_empty_page(lake: Lake) -> None:
    assert exchanges(lake, ExchangeFilters(), None, 10) == Slice([], None)
    assert exchanges(lake, ExchangeFilters(group="g"), None, 10) == Slice([], None)
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
        HEARTBEATS: [one | {"group_id": "payments"} for one in ROWS if one["api"] == "Heartbeat" and one["request_at"]],
        FETCHES: [
            one | {"group_id": "payments" if number % 3 == 0 else "others"}
            for number, one in enumerate(ROWS)
            if one["api"] == "ShareFetch" and one["request_at"]
        ],
    }
    for table, given in of_groups.items():
        kept = [{name: one[name] for name in one if name in table.schema.names} for one in given]
        commit(filled, table, written(filled, "i0", table, rows(table, kept)), "i0")
    return filled


def named(one: dict[str, Any]) -> bool:
    number = ROWS.index(one)
    is_fetch = one["api"] == "ShareFetch" and number % 3 == 0
    return one["request_at"] is not None and (one["api"] == "Heartbeat" or is_fetch)


@pytest.mark.parametrize(
    ("asked", "holds"),
    [
        (ExchangeFilters(group="payments"), lambda _: True),
        (ExchangeFilters(group="payments", api="Heartbeat"), lambda one: one["api"] == "Heartbeat"),
        (ExchangeFilters(group="payments", api="Produce"), lambda _: False),
        (ExchangeFilters(group="payments", client="app_?"), lambda one: one["client_id"] is not None),
        (ExchangeFilters(group="payments", error="any"), lambda one: bool(one["error_code"])),
        (ExchangeFilters(group="payments", error="NOT_LEADER_OR_FOLLOWER"), lambda one: one["error"] is not None),
        (ExchangeFilters(group="payments", status="unanswered"), lambda one: one["status"] == "unanswered"),
        (ExchangeFilters(group="payments", slower_us=2_000), lambda one: (one["latency_us"] or 0) >= 2_000),
        (ExchangeFilters(group="payments", since=microseconds(NOON + SECOND)), lambda one: time_of(one) >= NOON + SECOND),
        (ExchangeFilters(group="payment"), lambda _: False),
    ],
)  # fmt: skip
def test_exchanges_of_a_group_are_those_whose_requests_name_it(
    grouped: Lake, monkeypatch: pytest.MonkeyPatch, asked: ExchangeFilters, holds: Callable[[dict[str, Any]], bool]
) -> None:
    wanted = in_order([one for one in ROWS if asked.group == "payments" and named(one) and holds(one)])
    assert ids(grouped, asked, 20) == wanted
    monkeypatch.setattr("kafkascope.lake.read.browse._LOOKED_UP", 3)
    monkeypatch.setattr("kafkascope.lake.read.browse._MORE", 2)
    assert ids(grouped, asked, 20) == wanted


def test_bodies_of_an_exchange_are_its_own_rows(grouped: Lake) -> None:
    known = next(one for one in ROWS if one["api"] == "ShareFetch" and named(one))
    found = exchange(grouped, known["exchange_id"])
    assert found is not None
    told = bodies(grouped, found)
    assert told.keys() == {"share_fetch_request"}
    assert told["share_fetch_request"] is not None
    assert told["share_fetch_request"]["group_id"] == "payments"
    assert told["share_fetch_request"]["exchange_id"] == known["exchange_id"]


def test_a_page_opens_few_row_groups(filled: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    whole = TimedFile.read

    def counted(self: TimedFile, columns: Any) -> pa.Table:
        read.append(self.fragment.path)
        return whole(self, columns)

    for day in range(20):
        later = [one | {"request_at": NOON + days(day + 2), "exchange_id": f"d{day}"} for one in ROWS[:1]]
        land(filled, f"j{day}", rows(EXCHANGES, later))
    monkeypatch.setattr(TimedFile, "read", counted)
    exchanges(
        filled, ExchangeFilters(since=microseconds(NOON + days(10)), until=microseconds(NOON + days(11))), None, 10
    )
    assert len(set(read)) == 1
    read.clear()
    exchange(filled, "d5", microseconds(NOON + days(7)))
    assert len(set(read)) == 1
    read.clear()
    exchanges(filled, ExchangeFilters(), Place(microseconds(NOON + days(15)), "0"), 2)
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
        with pytest.raises(InputError, match="outside of its folder") as caught:
            call()
        assert "\n" not in str(caught.value)
