"""The server under load: uploads beyond what it holds are told to wait, others are served, and no connection stays."""

import contextlib
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette

from kafkascope.explorer.decode.decoder import Decoder
from kafkascope.explorer.facts.missing import near
from kafkascope.explorer.gate import Gate
from kafkascope.explorer.gates import server_gates
from kafkascope.explorer.lake_kinds import lake_kinds
from kafkascope.explorer.server.app import create
from kafkascope.limits import MAX_QUEUE_SECONDS, MAX_UPLOAD_BYTES, MAX_UPLOADS_BYTES, MAX_URLENCODED_BYTES
from tests.explorer.asgi import Answer, ask
from tests.explorer.serving import PATIENCE, connect, get, head, is_closed, response, serving
from tests.support.traffic import request

UPLOADS = 60
HELD = MAX_UPLOADS_BYTES // MAX_UPLOAD_BYTES
FRAME = request("Heartbeat", 0, 1)


@pytest.fixture
def decoder() -> Iterator[Decoder]:
    made = Decoder(seconds=PATIENCE)
    yield made
    made.close()


@pytest.fixture
def app(decoder: Decoder) -> Starlette:
    return create(decoder=decoder)


def upload_head(size: int, path: str = "/decode.json") -> bytes:
    return head("POST", path, Content_Type="application/octet-stream", Content_Length=size)


def decoded(port: int) -> Answer:
    with connect(port, upload_head(len(FRAME)) + FRAME) as connection:
        return response(connection)


def is_told_to_wait(answer: Answer) -> bool:
    return (answer.status, answer.headers.get("retry-after")) == (503, str(MAX_QUEUE_SECONDS)) and (
        f"try again in {MAX_QUEUE_SECONDS} s" in answer.text
    )


def resident_bytes() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * 4096


def until(condition: Callable[[], bool]) -> None:
    """Polls; only what hangs misses the deadline."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def answered(connections: list[socket.socket]) -> list[socket.socket]:
    return select.select(connections, [], [], 0)[0]


def stuck_uploads(port: int, count: int) -> list[socket.socket]:
    """Each announces the largest upload and sends a part of it."""
    part = bytes(300_000)
    return [connect(port, upload_head(MAX_UPLOAD_BYTES) + part) for _ in range(count)]


def test_of_sixty_uploads_at_once_all_but_four_are_told_to_wait_and_pages_are_served(app: Starlette) -> None:
    with serving(app) as port:
        assert decoded(port).status == 200
        before = resident_bytes()
        uploads = stuck_uploads(port, UPLOADS)
        until(lambda: len(answered(uploads)) == UPLOADS - HELD)
        refused = answered(uploads)
        assert all(is_told_to_wait(response(connection)) for connection in refused)
        for connection in set(uploads) - set(refused):
            connection.sendall(bytes(MAX_UPLOAD_BYTES - 300_001))
        assert get(port, "/index.html").status == 200
        assert get(port, "/message/FetchRequest/4.html").status == 200
        assert resident_bytes() - before < 3 * MAX_UPLOADS_BYTES
        for connection in uploads:
            connection.close()
        # What they held is free again.
        until(lambda: decoded(port).status == 200)


def test_a_page_says_to_wait_as_well_as_json(app: Starlette) -> None:
    with serving(app) as port:
        uploads = stuck_uploads(port, HELD + 1)
        until(lambda: len(answered(uploads)) == 1)
        with connect(port, upload_head(MAX_UPLOAD_BYTES, "/decode.html")) as connection:
            page = response(connection)
        assert is_told_to_wait(page)
        assert page.text.startswith("<!DOCTYPE html>")
        # A few bytes still have room.
        assert decoded(port).status == 200
        for connection in uploads:
            connection.close()


def test_an_upload_that_never_ends_is_refused_and_leaves_its_place() -> None:
    decoder = Decoder(seconds=PATIENCE, upload_seconds=0.2)
    with serving(create(decoder=decoder), head_seconds=1) as port:
        for connection in stuck_uploads(port, HELD):
            with connection:
                refusal = response(connection)
                assert (refusal.status, refusal.json["problem"]) == (408, "the upload took more than 0.2 s")
                assert is_closed(connection)
        decoder.upload_seconds = PATIENCE
        assert decoded(port).status == 200
    decoder.close()


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET /index.ht",
        b"GET /index.html HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: ",
        head("GET", "/index.html"),
        head("GET", "/index.html", Content_Length=1_000_000) + b"some",
        head("POST", "/index.html", Transfer_Encoding="chunked") + b"5\r\nhello\r\n",
        upload_head(1 << 30) + b"some",
    ],
    ids=["nothing", "half a line", "half a head", "idle after a page", "half a body", "half of a chunked", "too large"],
)
@pytest.mark.parametrize("dripping", [False, True], ids=["silent", "byte by byte"])
def test_a_connection_without_a_whole_request_is_closed(app: Starlette, sent: bytes, dripping: bool) -> None:
    with serving(app, head_seconds=0.2) as port, connect(port, sent) as connection:
        if not dripping:
            assert is_closed(connection)
            return

        def is_refused() -> bool:
            try:
                connection.sendall(b"x")
            except ConnectionError:
                return True
            return False

        until(is_refused)


def test_a_client_that_takes_no_response_is_closed(app: Starlette) -> None:
    with serving(app, response_seconds=0.2) as port, socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.settimeout(PATIENCE)
        connection.connect(("127.0.0.1", port))
        # More responses than the buffers of both ends hold.
        connection.sendall(head("GET", "/errors.html") * 120)

        def is_refused() -> bool:
            try:
                connection.sendall(b"GET")
            except ConnectionError:
                return True
            return False

        until(is_refused)
        assert get(port, "/index.html").status == 200


def test_idle_connections_make_room_for_others_the_oldest_first(app: Starlette) -> None:
    with serving(app, most=8, head_seconds=PATIENCE * 10) as port:
        idle = [connect(port, b"GET /") for _ in range(200)]
        assert get(port, "/index.html").status == 200
        assert is_closed(idle[0])
        assert answered(idle[-7:]) == []
        for connection in idle:
            connection.close()


def test_a_connection_that_makes_room_before_its_first_request_is_told_to_wait(app: Starlette) -> None:
    with serving(app, most=4, head_seconds=PATIENCE * 10) as port:
        idle = [connect(port) for _ in range(8)]
        assert all(is_told_to_wait(response(connection)) for connection in idle[:4])
        for connection in idle:
            connection.close()


def test_forms_are_taken_apart_one_after_the_other(app: Starlette, decoder: Decoder) -> None:
    decoder.parsing = Gate("other forms are read", 0, queued=0)
    headers = {"content-type": "application/x-www-form-urlencoded"}
    assert is_told_to_wait(ask(app, "/decode.json", method="POST", headers=headers, body=b"data=00"))


def test_where_every_connection_has_a_request_another_is_told_to_wait(app: Starlette) -> None:
    with serving(app, most=HELD) as port:
        uploads = [
            connect(port, head("POST", "/decode.json", Content_Length=9, Expect="100-continue")) for _ in range(HELD)
        ]
        assert all(connection.recv(100).startswith(b"HTTP/1.1 100 ") for connection in uploads)
        with connect(port) as connection:
            assert is_told_to_wait(response(connection))
        for upload in uploads:
            upload.close()
        until(lambda: get(port, "/index.html").status == 200)


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(20_000)) + b"\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n",
        head("POST", "/decode.json", Content_Length=4, Transfer_Encoding="chunked") + b"0\r\n\r\nGET /",
        head("POST", "/decode.json", Content_Length="4\r\nContent-Length: 5") + b"00000",
        head("POST", "/decode.json", Transfer_Encoding="chunked") + b"zz\r\nno size",
        head("POST", "/index.html", Transfer_Encoding="chunked") + b"1\r\nx\r\n" + b"zz\r\nno size",
        head("GET", "/index.html") + b"\x00\x16\x03\x01 what is this\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        head("GET", "/index.html", Connection="Upgrade", Upgrade="websocket"),
        head("CONNECT", "127.0.0.1:80"),
    ],
)  # fmt: skip
def test_what_is_no_request_ends_its_connection_and_nothing_else(
    app: Starlette, sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(app, head_seconds=0.5) as port:
        with connect(port) as connection:
            with contextlib.suppress(ConnectionError):
                connection.sendall(sent)
            assert is_closed(connection)
        assert get(port, "/index.html").status == 200
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


def test_a_body_that_breaks_after_its_response_ends_the_connection(
    app: Starlette, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(app, head_seconds=PATIENCE * 10) as port:
        with connect(port, head("POST", "/index.html", Transfer_Encoding="chunked") + b"1\r\nx\r\n") as connection:
            assert response(connection).status == 405
            connection.sendall(b"zz\r\nno size")
            assert is_closed(connection)
        assert get(port, "/index.html").status == 200
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


def test_pages_of_a_lake_have_a_bound_and_those_beyond_it_are_told_to_wait(hostile: Path) -> None:
    closed = {name: Gate(f"{name} is busy", 0, queued=0) for name in server_gates()}
    app = create(str(hostile / "lake"), gates=closed)
    pages = [kind.path.format(exchange_id="abc123", table="topic_record") for kind in lake_kinds("anywhere")]
    pages += [path.replace(".html", ".json") for path in pages] + ["lake/report.html"]
    for path in pages:
        response = ask(app, f"/{path}")
        assert is_told_to_wait(response), path
        assert (b"<html" in response.body) == path.endswith(".html")
    assert ask(app, "/index.html").status == 200


def test_a_server_with_few_files_stays_reachable_and_ends_without_a_traceback() -> None:
    process, port = limited_server(files=128)
    idle = [connect(port, b"GET /") for _ in range(300)]
    assert get(port, "/index.html").status == 200
    uploads = stuck_uploads(port, HELD)
    assert get(port, "/index.html").status == 200
    process.terminate()
    _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (0, "")
    for connection in idle + uploads:
        connection.close()


HANGING = """
import socket, time
from starlette.applications import Starlette
from starlette.routing import Route
from kafkascope.explorer.server.run import run

def page(_):  # in a thread, as pages of a lake are made
    print("asked", flush=True)
    time.sleep(3600)

listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
run(Starlette(routes=[Route("/", page)]), listening)
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_ends_it_while_a_page_is_being_made(number: signal.Signals, code: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HANGING], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with connect(int(process.stdout.readline()), head("GET", "/")):
        assert process.stdout.readline() == "asked\n"
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (code, "")


def limited_server(files: int) -> tuple["subprocess.Popen[str]", int]:
    """`kafkascope serve` in a process that may open so many files, and its port."""
    program = [sys.executable, "-u", "-c", "from kafkascope.cli.main import run; run()", "serve", "--no-browser"]
    command = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", *program]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, int(process.stdout.readline().split()[0].rstrip("/").rpartition(":")[2])


def test_a_url_encoded_form_has_a_cap_of_its_own(app: Starlette) -> None:
    body = b"data=" + b"%41" * (MAX_URLENCODED_BYTES // 3)
    headers = {"content-type": "application/x-www-form-urlencoded"}
    response = ask(app, "/decode.json", method="POST", headers=headers, body=body)
    assert (response.status, "send it as multipart" in response.json["problem"]) == (413, True)


def test_an_address_of_many_parts_is_compared_by_its_first(app: Starlette) -> None:
    names = [f"ShareFetchRequst{number}" for number in range(500)]
    assert near("/".join(names)) == near("/".join(names[:4]))
    assert ask(app, f"/{'/'.join(names)}").status == 404
