"""Files for other programs: schemas that hold for the examples, a feed and a map that lead to pages."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from jsonschema import Draft202012Validator, ValidationError
from starlette.applications import Starlette

from kafkascope.cli.main import main
from kafkascope.errors import UsageError
from kafkascope.explorer import site as module
from kafkascope.explorer.downloads import public_address
from kafkascope.explorer.facts.json_schema import json_schema
from kafkascope.explorer.facts.release_feed import release_feed
from kafkascope.explorer.kinds import KINDS
from kafkascope.explorer.pages import message
from kafkascope.explorer.server.app import create
from kafkascope.explorer.site import site
from kafkascope.schema.layouts.layout import layout
from kafkascope.schema.releases import releases
from tests.explorer.asgi import ask
from tests.support.pairs import CHUNKS, chunk_of

ALL = ("request", "response", "header", "metadata", "key", "value", "data")


@pytest.fixture(scope="module")
def app() -> Starlette:
    return create()


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_example_of_every_message_is_valid_by_its_json_schema(chunk: int) -> None:
    for place in chunk_of(list(message.every_of(ALL)), chunk):
        message_layout = message.find_layout(place["name"], place["version"], ALL)
        schema = json_schema(message_layout)
        Draft202012Validator.check_schema(schema)
        Draft202012Validator(schema).validate(message.message_facts(message_layout)["example"]["json"])


@pytest.mark.parametrize(
    "wrong",
    [{"maxWaitMs": 1 << 31}, {"groupId": 5}, {"isRenewAck": "no"}, {"topics": None}, {"other": 1}, {"memberId": ["a"]}],
)
def test_a_json_schema_refuses_what_kafka_would(wrong: dict[str, object]) -> None:
    message_layout = layout("ShareFetchRequest", 2)
    value = message.message_facts(message_layout)["example"]["json"]
    with pytest.raises(ValidationError):
        Draft202012Validator(json_schema(message_layout)).validate(value | wrong)


def test_a_message_page_leads_to_its_schemas(app: Starlette) -> None:
    for page, name in (
        ("message/ShareFetchRequest/2", "ShareFetchRequest/2"),
        ("message/ReadShareGroupStateSummaryResponse/0@4.0", "ReadShareGroupStateSummaryResponse/0@4.0"),
        ("record/TopicRecord/0", "TopicRecord/0"),
    ):
        text = ask(app, f"/{page}.html").text
        assert f'href="../../schema/{name}.txt"' in text and f'href="../../schema/{name}.json"' in text
        assert ask(app, f"/schema/{name}.txt").text.strip() == ask(app, f"/{page}.json").json["schema"]
        assert ask(app, f"/schema/{name}.json").json["type"] == "object"
    assert ask(app, "/schema/ShareFetchRequest/99.json").status == 404
    assert ask(app, "/schema/Nobody/0.txt").status == 404


def test_the_site_has_the_schema_of_every_message(whole_site: Path) -> None:
    for place in message.every_of(ALL):
        file = whole_site / "schema" / place["name"] / place["version"]
        assert file.with_name(f"{place['version']}.txt").is_file()
        assert file.with_name(f"{place['version']}.json").is_file()


def test_the_feed_has_every_release_and_leads_to_its_page(app: Starlette, whole_site: Path) -> None:
    space = {"a": "http://www.w3.org/2005/Atom"}
    feed = ElementTree.fromstring(release_feed())  # noqa: S314
    entries = feed.findall("a:entry", space)
    assert [entry.findtext("a:title", None, space) for entry in entries] == [
        f"Kafka {release.name}" for release in reversed(releases()[1:])
    ]
    for entry in entries:
        link = entry.find("a:link", space)
        assert link is not None and (whole_site / link.attrib["href"]).is_file()
        assert entry.findtext("a:updated", None, space)
        assert entry.findtext("a:summary", None, space)
    assert (whole_site / "releases.xml").is_file()
    assert ask(app, "/releases.xml").headers["content-type"].startswith("application/atom+xml")


@pytest.fixture
def few_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KINDS", tuple(kind for kind in KINDS if kind.name in ("home", "errors")))


@pytest.mark.usefixtures("few_pages")
def test_a_site_with_an_address_has_a_map_and_says_it_to_previews(tmp_path: Path) -> None:
    assert main(["site", str(tmp_path), "--url", "https://example.org/kafka"]) == 0
    space = {"s": "http://www.sitemaps.org/schemas/sitemap/0.9"}
    listed = ElementTree.parse(tmp_path / "sitemap.xml").findall("s:url/s:loc", space)  # noqa: S314
    assert [loc.text for loc in listed] == [f"https://example.org/kafka/{name}.html" for name in ("index", "errors")]
    text = (tmp_path / "errors.html").read_text(encoding="utf-8")
    assert '<meta property="og:url" content="https://example.org/kafka/errors.html">' in text
    assert '<meta property="og:title" content="Error codes">' in text
    site(tmp_path)
    assert not (tmp_path / "sitemap.xml").exists()


@pytest.mark.parametrize(
    "text", ["example.org", "ftp://example.org", "https://", "https://a/?b", "javascript:alert(1)"]
)
def test_what_is_no_address_of_a_site_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="isn't the address of a site"):
        public_address(text)
