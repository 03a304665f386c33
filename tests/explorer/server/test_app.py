"""The server: addresses, JSON, what is not there, who may ask, and what every answer carries."""

import json
import os
import signal
import subprocess
import sys
import urllib.request

import pytest
from starlette.applications import Starlette

from kafkascope.explorer.kinds import KINDS
from kafkascope.explorer.render import json_of
from kafkascope.explorer.server.app import create
from kafkascope.explorer.server.guard import HEADERS, Guard
from tests.explorer.asgi import ask
from tests.hostile.test_interrupt import START

SEEDS = (
    ("ShareGroupDescribeResponse", 1),
    ("StreamsGroupHeartbeatResponse", 0),
    ("ShareFetchRequest", 2),
    ("DescribeQuorumResponse", 1),
)


@pytest.fixture(scope="module")
def app() -> Starlette:
    return create()


def test_the_root_leads_to_the_home_page(app: Starlette) -> None:
    response = ask(app, "/")
    assert response.status == 307
    assert response.headers["location"] == "index.html"
    assert "ShareFetch" in ask(app, "/index.html").text


@pytest.mark.parametrize(("name", "version"), SEEDS)
def test_a_page_and_its_facts_have_one_address(app: Starlette, name: str, version: int) -> None:
    page = ask(app, f"/message/{name}/{version}.html")
    facts = ask(app, f"/message/{name}/{version}.json")
    assert page.status == facts.status == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert facts.json["message"] == name
    assert facts.json["version"] == version
    kind = next(kind for kind in KINDS if kind.name == "message")
    assert facts.text == json_of(kind, {"name": name, "version": str(version)})


def test_every_answer_carries_the_headers_that_keep_it_to_itself(app: Starlette) -> None:
    for path in ("/index.html", "/page.css", "/search.js", "/nowhere.html", "/api/Fetch.json", "/"):
        headers = ask(app, path).headers
        for name, value in HEADERS.items():
            assert headers[name.lower()] == value, path
    assert "unsafe" not in HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in HEADERS["Content-Security-Policy"]
    assert "set-cookie" not in ask(app, "/index.html").headers


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "", "localhost.evil.example"]
)
def test_a_name_that_is_not_ours_is_refused(app: Starlette, host: str) -> None:
    response = ask(app, "/index.html", headers={"host": host})
    assert response.status == 421
    assert "ShareFetch" not in response.text


@pytest.mark.parametrize("host", ["localhost", "localhost:1234", "127.0.0.1:80", "[::1]:8080"])
def test_loopback_goes_by_all_its_names(app: Starlette, host: str) -> None:
    assert ask(app, "/index.html", headers={"host": host}).status == 200


def test_a_wildcard_takes_addresses_and_no_strange_names() -> None:
    guard = Guard(create(), "0.0.0.0")  # noqa: S104
    assert guard.knows("192.168.1.7:8080")
    assert guard.knows("[fe80::1]:8080")
    assert not guard.knows("evil.example:8080")
    for header in ("[::1].evil.example", "127.0.0.1:80@evil.example", "[::1", "127.0.0.1:8080 evil.example"):
        assert not guard.knows(header), header
    named = Guard(create(), "kafka.lan")
    assert named.knows("kafka.lan:80")
    assert not named.knows("192.168.1.7:80")


@pytest.mark.parametrize(
    ("path", "suggested"),
    [
        ("/api/ShareFech.html", "ShareFetch"),
        ("/message/ShareFetchRequst/2.html", "ShareFetchRequest"),
        ("/message/ShareFetchRequest/9.html", "ShareFetchRequest v2"),
        ("/message/ShareFetchRequest/x.html", "ShareFetchRequest v2"),
        ("/api/sharefetch.html", "ShareFetch"),
        ("/kip/99999.html", ""),
        ("/nothing/at/all.html", ""),
    ],
)
def test_what_is_not_there_is_404_with_what_may_have_been_meant(app: Starlette, path: str, suggested: str) -> None:
    response = ask(app, path)
    assert response.status == 404
    assert suggested in response.text
    as_json = ask(app, path.removesuffix(".html") + ".json")
    assert as_json.status == 404
    assert as_json.json["error"]
    if suggested:
        assert suggested in {item["text"].removesuffix(" v2") for item in as_json.json["near"]} | {
            item["text"] for item in as_json.json["near"]
        }


@pytest.mark.parametrize(
    ("path", "message", "near"),
    [
        ("/message/TopicRecord/0", "TopicRecord is a record: /record/TopicRecord/0.html", "TopicRecord v0"),
        ("/message/ShareFetch/2", "ShareFetch is an API: /api/ShareFetch.html", "ShareFetch"),
        (
            "/record/ShareFetchRequest/2",
            "ShareFetchRequest is a request of ShareFetch: /message/ShareFetchRequest/2.html",
            "ShareFetchRequest v2",
        ),
        (
            "/api/ShareFetchRequest",
            "ShareFetchRequest is a request of ShareFetch: /message/ShareFetchRequest/2.html",
            "ShareFetchRequest v2",
        ),
        ("/field/groupid", "did you mean GroupId?", "GroupId"),
        ("/field/GruopId", "did you mean GroupId", "GroupId"),
    ],
)
def test_a_name_of_another_kind_is_told_where_it_is(app: Starlette, path: str, message: str, near: str) -> None:
    response = ask(app, f"{path}.json")
    assert response.status == 404
    assert message in response.json["error"]
    assert near in {item["text"] for item in response.json["near"]}
    assert ask(app, f"{path}.html").status == 404


def test_suggestions_are_of_the_kind_of_the_page(app: Starlette) -> None:
    assert "Record" not in ask(app, "/message/TopicRecrd/0.json").json["error"].partition(";")[2]
    assert "Request" not in ask(app, "/api/ShareFetchReqest.json").json["error"].partition(";")[2]


@pytest.mark.parametrize(("name", "release"), [("0.11.0.3", "0.11"), ("0.9.0.1", "0.9"), ("4.3.1", "4.3")])
def test_a_patch_release_is_the_page_of_its_release(app: Starlette, name: str, release: str) -> None:
    assert ask(app, f"/release/{name}.json").json["release"] == release


@pytest.mark.parametrize("version", ["02", "2@", "2@4.4.0", "-1", "²", "2@9.9", "99999999999", "1@3.9"])
def test_a_version_has_one_way_to_be_written(app: Starlette, version: str) -> None:
    assert ask(app, f"/message/ShareFetchRequest/{version}.html").status == 404


def test_an_unknown_version_names_those_that_there_are(app: Starlette) -> None:
    assert "it has 0-2" in ask(app, "/message/ShareFetchRequest/9.html").text


def test_the_layout_of_a_release_has_its_own_address(app: Starlette) -> None:
    old = ask(app, "/message/ReadShareGroupStateSummaryResponse/0@4.0.json").json
    new = ask(app, "/message/ReadShareGroupStateSummaryResponse/0.json").json
    assert old["release"] == "4.0"
    assert "LeaderEpoch" in new["schema"]
    assert "LeaderEpoch" not in old["schema"]


@pytest.mark.parametrize(
    "path",
    [
        "/api/%3Cscript%3Ealert(1)%3C%2Fscript%3E.html",
        "/message/%22%3E%3Cb%3E/1.html",
        "/search.html?q=%3Cimg%20src%3Dx%3E",
    ],
)
def test_markup_in_an_address_stays_text(app: Starlette, path: str) -> None:
    text = ask(app, path).text
    assert "<script>alert" not in text
    assert "<b>" not in text
    assert "<img" not in text


def test_an_address_that_looks_like_a_scheme_is_no_link(app: Starlette) -> None:
    assert "javascript:" not in ask(app, "/javascript:alert(1)").text


def test_pages_that_are_kept_are_bounded(app: Starlette, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkascope.explorer.server.app.MAX_KEPT_PAGES", 2)
    small = create()
    tags = {ask(small, f"/api/{name}.html").headers["etag"] for name in ("Fetch", "Produce", "Metadata", "Fetch")}
    assert len(tags) == 3
    assert ask(small, "/api/Fetch.html").text == ask(app, "/api/Fetch.html").text


def test_a_browser_that_has_the_page_gets_304(app: Starlette) -> None:
    first = ask(app, "/api/Fetch.html")
    again = ask(app, "/api/Fetch.html", headers={"if-none-match": first.headers["etag"]})
    assert again.status == 304
    assert again.body == b""
    assert ask(app, "/api/Fetch.html", headers={"if-none-match": '"other"'}).status == 200


def test_head_is_answered_and_post_is_not(app: Starlette) -> None:
    assert ask(app, "/api/Fetch.html", method="HEAD").status == 200
    assert ask(app, "/api/Fetch.html", method="POST").status == 405


def test_no_path_leaves_the_site(app: Starlette) -> None:
    for path in ("/../pyproject.toml", "/static/../app.py", "/%2e%2e/%2e%2e/etc/passwd", "/page.css/../app.py"):
        assert ask(app, path).status in (404, 405), path


def test_the_search_page_finds_without_script(app: Starlette) -> None:
    response = ask(app, "/search.html?q=sharefetch")
    assert 'href="api/ShareFetch.html"' in response.text
    assert ask(app, "/search.html").status == 200
    assert ask(app, f"/search.html?q={'x' * 5000}").status == 200


def test_serve_prints_its_address_answers_and_ends_on_an_interrupt() -> None:
    command = [sys.executable, "-c", START, "serve", "--no-browser", "--json"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        document = json.loads(process.stdout.readline())
        address = document["address"]
        assert address == f"http://127.0.0.1:{document['port']}/"
        try:
            with urllib.request.urlopen(f"{address}api/ShareFetch.html", timeout=20) as page:  # noqa: S310
                assert b"ShareFetch" in page.read()
                assert page.headers["X-Frame-Options"] == "DENY"
        finally:
            process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=20)[1]
        assert process.returncode == 130, output
        assert "Traceback" not in output
