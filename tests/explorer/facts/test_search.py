"""The search: what people type leads to what they mean, by name, part of a name, capitals or number."""

import json
import re

import pytest

from kafkascope.explorer.facts.search.entries import entries
from kafkascope.explorer.facts.search.find import MOST_RESULTS, search
from kafkascope.explorer.facts.search.script import index_script
from kafkascope.schema.catalog import apis, index
from kafkascope.schema.errors.error_codes import error_codes
from kafkascope.schema.releases import releases

ASKED = [
    ("ShareFetch", "api/ShareFetch.html"),
    ("sharefetch", "api/ShareFetch.html"),
    ("78", "api/ShareFetch.html"),
    ("sf", "api/ShareFetch.html"),
    ("121", "error/INVALID_RECORD_STATE.html"),
    ("INVALID_RECORD_STATE", "error/INVALID_RECORD_STATE.html"),
    ("InvalidRecordStateException", "error/INVALID_RECORD_STATE.html"),
    ("4.4", "release/4.4.html"),
    ("kip-932", "kip/932.html"),
    ("932", "kip/932.html"),
    ("isrenewack", "message/ShareFetchRequest/2.html#f-IsRenewAck"),
    ("groupid sharefetch", "message/ShareFetchRequest/2.html#f-GroupId"),
    ("AlterIsr", "api/AlterPartition.html"),
    ("-1", "error/UNKNOWN_SERVER_ERROR.html"),
]

# What leads to one page alone, or to it before everything else.
FIRST = [
    ("ShareFetchRequest:2", "message/ShareFetchRequest/2.html"),
    ("ShareFetch:2", "message/ShareFetchRequest/2.html"),
    ("fetch v12", "message/FetchRequest/12.html"),
    ("metadata 9", "message/MetadataRequest/9.html"),
    ("share fetch", "api/ShareFetch.html"),
    ("invalid record state", "error/INVALID_RECORD_STATE.html"),
    ("decode", "decode.html"),
    ("upgrades", "upgrades.html"),
    ("__consumer_offsets", "records.html#groups"),
    ("varint", "batches.html#record"),
    ("queues for kafka", "kip/932.html"),
    ("shrefetch", "api/ShareFetch.html"),
    ("shraefetch v2", "api/ShareFetch.html"),
    ("produse", "api/Produce.html"),
    ("share_lock_expired", "docs/findings.html#share_lock_expired"),
    ("cookbook", "docs/cookbook.html"),
    ("documentation", "docs/index.html"),
    *((name, f"api/{name}.html") for name in apis().values()),
]

# In the browser these find the same as here, too.
OTHERS = ("e", "offset", "zzzz", "group describe", "78 share", "records", "-1", "fetch 99", "fecth", "lake", "install")


@pytest.mark.parametrize(("asked", "address"), FIRST)
def test_finds_it_first(asked: str, address: str) -> None:
    assert search(asked)[0].address == address


def test_instead_of_a_version_that_is_not_there_the_message_is_offered() -> None:
    assert search("ShareFetchRequest:99")[0].address == "message/ShareFetchRequest/2.html"


def test_no_page_is_listed_twice() -> None:
    for asked in ("fetch 18", "ShareFetch:2", "records"):
        addresses = [entry.address for entry in search(asked)]
        assert len(addresses) == len(set(addresses)), asked


@pytest.mark.parametrize(("query", "address"), ASKED)
def test_finds_what_is_meant(query: str, address: str) -> None:
    assert address in [entry.address for entry in search(query)][:3]


@pytest.mark.parametrize("query", ["", "   ", "zzzz", "<script>", "(", "\\", "é"])
def test_finds_nothing_where_there_is_nothing(query: str) -> None:
    assert search(query) == []


def test_everything_of_the_catalog_is_found() -> None:
    kinds: dict[str, set[str]] = {}
    for entry in entries():
        kinds.setdefault(entry.kind, set()).add(entry.text)
    assert kinds["api"] == set(apis().values())
    assert kinds["error"] == {error.name for error in error_codes().values()}
    assert kinds["release"] == {f"Kafka {release.name}" for release in releases()}
    assert kinds["message"] | kinds["record"] == set(index())
    assert len(kinds["field"]) > 500


def test_a_long_list_is_cut() -> None:
    assert len(search("e")) == MOST_RESULTS


def test_the_script_holds_data_that_is_json_and_no_way_out_of_it() -> None:
    data = re.match(r"window\.kafkascope=\{data:(.*)\};\n", index_script())
    assert data
    packed = json.loads(data[1])
    assert [row[0] for row in packed["api"]] == list(apis().values())
    assert "</script" not in index_script().lower()
