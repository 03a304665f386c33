"""What a stranger may put in: markup in every input comes out as text, and nothing goes further than it should."""

import re
import socket
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.applications import Starlette

from kafkascope.explorer.downloads import DOWNLOADS
from kafkascope.explorer.server.app import create
from kafkascope.explorer.server.guard import HEADERS
from kafkascope.explorer.server.routes import server_kinds
from kafkascope.limits import MAX_UPLOAD_BYTES
from tests.explorer.asgi import ask
from tests.report.build import HOSTILE
from tests.support.traffic import request

MARKUP = "\"'><script>alert(1)</script><img src=x onerror=alert(1)><a href=javascript:alert(1)>"
# What every page may hold; the report draws, and has its own style and script, each by its hash.
ELEMENTS = frozenset(
    "html head meta title link script body a header nav ul li form label input button main h1 h2 h3 h4 p div span"
    " section small code pre table thead tbody tr th td footer strong em b dl dt dd details summary select option"
    " textarea ol svg g path line rect text circle polygon polyline figure figcaption caption br hr abbr time marker"
    " defs desc datalist".split()
)


class Reader(HTMLParser):
    """What a browser would make of a page: its elements, and attributes that would run something."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.scripts: list[str | None] = []
        self.active: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        if tag == "script":
            self.scripts.append(dict(attrs).get("src"))
        for name, value in attrs:
            if name.startswith("on") or name == "style" or (value or "").strip().lower().startswith("javascript:"):
                self.active.append(f"{tag} {name}={value}")


def check(text: str) -> None:
    reader = Reader(text)
    assert reader.elements <= ELEMENTS, reader.elements - ELEMENTS
    assert reader.active == []
    for script in reader.scripts:
        assert script is not None and re.fullmatch(r"(\.\./)*(page|find|search)\.js", script), script


@pytest.fixture(scope="module")
def app(hostile: Path) -> Starlette:
    return create(str(hostile / "lake"))


def test_markup_in_every_place_of_every_address_stays_text(app: Starlette) -> None:
    for kind in server_kinds("anywhere"):
        path = re.sub(r"\{\w+\}", quote(MARKUP, safe=""), kind.path)
        for query in ("", *(f"?{name}={quote(MARKUP)}" for name in (*kind.query, "hex", "as", "release", "q"))):
            check(ask(app, f"/{path}{query}").text)


def test_markup_in_the_address_of_a_download_or_a_choice_stays_text(app: Starlette) -> None:
    for download in DOWNLOADS:
        path = re.sub(r"\{\w+\}", quote(MARKUP, safe=""), download.path)
        answer = ask(app, f"/{path}")
        assert answer.status == 404
        assert "<script>alert" not in answer.text and "<img" not in answer.text
    chosen = ask(app, f"/upgrade.html?a={quote(MARKUP)}&b=//example.org/")
    assert chosen.status == 303
    assert re.fullmatch(r"upgrade/[\w%.-]*-[\w%.-]*\.html", chosen.headers["location"])


@pytest.mark.parametrize("field", ["data", "as", "release", "form", "file"])
def test_markup_in_the_form_of_the_decode_page_stays_text(app: Starlette, field: str) -> None:
    border = "b0"
    named = f'; filename="{MARKUP.replace(chr(34), "")}"' if field == "file" else ""
    parts = [("data", "00", "")] if field != "data" else []
    parts.append((field, MARKUP, named))
    body = "".join(
        f'--{border}\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n{value}\r\n'
        for name, value, more in parts
    )
    headers = {"content-type": f"multipart/form-data; boundary={border}"}
    response = ask(app, "/decode.html", method="POST", headers=headers, body=f"{body}--{border}--\r\n".encode())
    assert response.status in (200, 404, 422)
    check(response.text)


def test_markup_that_is_a_name_on_the_wire_stays_text(app: Starlette) -> None:
    frame = request("ShareGroupHeartbeat", 1, 1, client_id=MARKUP, groupId=MARKUP, subscribedTopicNames=[MARKUP])
    response = ask(app, f"/decode.html?hex={frame.hex()}")
    assert response.status == 200
    assert "ShareGroupHeartbeatRequest" in response.text and "&lt;script&gt;alert(1)" in response.text
    check(response.text)
    for exchange in ("abc123", "def456"):
        for page in (f"lake/exchange/{exchange}.html", f"lake/bytes/{exchange}.html"):
            response = ask(app, f"/{page}")
            assert response.status == 200, page
            check(response.text)
            assert "&lt;script&gt;alert(1)" in response.text


def test_a_lake_whose_names_are_markup_shows_text(app: Starlette) -> None:
    for page in ("index", "findings", "exchanges"):
        response = ask(app, f"/lake/{page}.html")
        assert response.status == 200, page
        check(response.text)
        assert "&lt;script&gt;alert(1)" in response.text, page
    for name in ("api", "error", "status"):
        response = ask(app, f"/lake/exchanges.html?{name}={quote(HOSTILE)}")
        assert response.status == 404
        check(response.text)
    response = ask(app, f"/lake/exchanges.html?group={quote(HOSTILE)}&client={quote(HOSTILE)}")
    assert response.status == 200
    check(response.text)


def test_the_report_of_such_a_lake_runs_none_of_it(app: Starlette) -> None:
    response = ask(app, "/lake/report.html")
    assert response.status == 200
    read = Reader(response.text)
    assert not read.active
    assert read.scripts == [None]
    assert "alert(1)</script>" not in response.text


def test_every_answer_whatever_it_is_carries_a_policy(app: Starlette) -> None:
    requests = [("/", "GET"), ("/decode.html", "POST"), ("/decode.html", "PUT"), ("/nothing", "GET")]
    requests += [
        (f"/lake/{name}", "GET") for name in ("index.html", "exchanges.json", "report.html", "exchange/none.html")
    ]
    for path, method in requests:
        response = ask(app, path, method=method)
        assert "default-src 'none'" in response.headers["content-security-policy"], (path, method, response.status)
        for name in HEADERS:
            assert name.lower() in response.headers, (path, method)
    refused = ask(app, "/lake/index.html", headers={"host": "evil.example"})
    assert (refused.status, refused.headers["content-security-policy"]) == (421, HEADERS["Content-Security-Policy"])


@pytest.mark.parametrize(
    "path",
    [
        "/lake/../../../etc/passwd", "/lake/exchange/..%2f..%2f_kafkascope.html", "/lake/%2e%2e/_kafkascope.json",
        "/lake/exchanges/_delta_log/00000000000000000000.json", "/lake/_kafkascope.json", "/lake//etc/passwd.html",
        "/lake/exchange/%00.html", "/lake/bytes/%2fetc%2fpasswd.html", "/templates/base.html", "/page.css%00.html",
    ],
)  # fmt: skip
def test_no_path_leads_to_a_file(app: Starlette, path: str) -> None:
    response = ask(app, path)
    assert response.status == 404
    assert "root:" not in response.text and '"format"' not in response.text


def listening(*arguments: str) -> tuple["subprocess.Popen[str]", str]:
    """A server of its own process and the port that it listens on."""
    command = [sys.executable, "-u", "-c", "from kafkascope.cli.main import run; run()", "serve", "--no-browser"]
    process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().split()[0].rstrip("/").rpartition(":")[2]


def test_beyond_loopback_it_says_what_that_means_and_large_uploads_are_refused_at_once() -> None:
    process, port = listening("--host", "0.0.0.0")  # noqa: S104
    try:
        with socket.create_connection(("127.0.0.1", int(port)), timeout=30) as plain:
            head = f"POST /decode.html HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {1 << 30}\r\n"
            plain.sendall(f"{head}Content-Type: application/octet-stream\r\n\r\n".encode())
            answer = b""
            deadline = time.monotonic() + 30
            while b"\r\n\r\n" not in answer and time.monotonic() < deadline:
                answer += plain.recv(65_536)
        # Not a byte of it was sent.
        assert b" 413 " in answer.split(b"\r\n")[0]
        with socket.create_connection(("127.0.0.1", int(port)), timeout=30) as plain:
            plain.sendall(b"GET /index.html HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
            assert b" 421 " in plain.recv(65_536).split(b"\r\n")[0]
    finally:
        process.terminate()
        _, output = process.communicate(timeout=30)
    assert "anyone who can reach this machine can read the explorer" in output
    assert "without password or encryption" in output
    assert "Traceback" not in output


def test_an_upload_beyond_the_cap_is_refused_by_counting_too(app: Starlette) -> None:
    response = ask(app, "/decode.json", method="POST", body=bytes(MAX_UPLOAD_BYTES + 70_000))
    assert response.status == 413
    assert "the decode page takes" in response.text
