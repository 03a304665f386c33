"""Pages over the wire: compressed for clients that take gzip, each form with a tag of its own."""

import gzip

import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from kafkascope.explorer.server.app import create
from kafkascope.explorer.server.content import Content, accepts_gzip
from kafkascope.explorer.server.guard import Guard
from tests.explorer.asgi import ask

GZIP = {"accept-encoding": "gzip, deflate, br"}


@pytest.fixture(scope="module")
def app() -> Starlette:
    return create()


@pytest.mark.parametrize(
    "path",
    [
        *("/index.html", "/message/ShareFetchRequest/2.html", "/api/Fetch.json", "/page.css", "/page.js", "/search.js"),
        *(
            "/schema/FetchRequest/4.json",
            "/search.html?q=fetch",
            "/decode.html",
            "/decode.html?hex=00&as=FetchRequest:4",
        ),
    ],
)
def test_a_browser_gets_the_same_page_in_fewer_bytes(app: Starlette, path: str) -> None:
    plain, packed = ask(app, path), ask(app, path, headers=GZIP)
    assert packed.status == plain.status
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert int(packed.headers["content-length"]) == len(packed.body) < len(plain.body) / 2
    assert plain.headers["vary"] == packed.headers["vary"] == "Accept-Encoding"


def test_each_form_of_a_page_has_a_tag_of_its_own(app: Starlette) -> None:
    plain, packed = (ask(app, "/api/Fetch.html", headers=headers) for headers in ({}, GZIP))
    tags = plain.headers["etag"], packed.headers["etag"]
    assert tags[0] != tags[1]
    assert ask(app, "/api/Fetch.html", headers={**GZIP, "if-none-match": tags[1]}).status == 304
    assert ask(app, "/api/Fetch.html", headers={"if-none-match": tags[0]}).status == 304
    # A cache must not take one form for the other.
    assert ask(app, "/api/Fetch.html", headers={**GZIP, "if-none-match": tags[0]}).status == 200


def test_an_unchanged_page_keeps_the_policy_of_its_own() -> None:
    """A browser replaces headers of the page that it keeps by those of a 304."""
    content = Content("x" * 2_000, "text/html", headers={"Content-Security-Policy": "style-src 'sha256-x'"})
    guarded = Guard(Starlette(routes=[Route("/page", content.response)]))
    for headers in ({}, GZIP):
        first = ask(guarded, "/page", headers=headers)
        again = ask(guarded, "/page", headers={**headers, "if-none-match": first.headers["etag"]})
        assert again.status == 304
        assert {name: again.headers[name] for name in first.headers if not name.startswith("content-")} == {
            name: value for name, value in first.headers.items() if not name.startswith("content-")
        }
        assert again.headers["content-security-policy"] == first.headers["content-security-policy"]


@pytest.mark.parametrize("path", ["/docs/report.png", "/icon.svg"])
def test_images_and_small_files_stay_as_they_are(app: Starlette, path: str) -> None:
    assert "content-encoding" not in ask(app, path, headers=GZIP).headers


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        ("", False),
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("gzip;q=0", False),
        ("gzip; q=0.000, *", False),
        ("*", True),
        ("*;q=0", False),
        ("identity, xgzip", False),
    ],
)
def test_gzip_is_for_those_who_ask_for_it(header: str, accepted: bool) -> None:
    assert accepts_gzip(header) is accepted
