"""The decode page: bytes in any dress, links, recordings; what cannot be read, what is refused, what is escaped."""

import asyncio
import lzma
import os
import signal
import subprocess
import sys
import time
from base64 import b64encode
from html import escape, unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.applications import Starlette
from starlette.types import Message

from kafkascope.codec.annotations.frame import example_header
from kafkascope.codec.frame import encode_frame
from kafkascope.codec.json_form import to_json
from kafkascope.codec.message import encode
from kafkascope.errors import InputError, UsageError
from kafkascope.explorer.decode.worker import DecodeWorker
from kafkascope.explorer.facts.batch_examples import EXAMPLES
from kafkascope.explorer.pages import decode
from kafkascope.explorer.render import Renderer
from kafkascope.explorer.server.app import create
from kafkascope.explorer.server.form_data import parse_form
from kafkascope.limits import MAX_LINK_BYTES, MAX_SHOWN_PIECES, MAX_UPLOAD_BYTES
from kafkascope.schema.layouts.examples import example
from tests.explorer.asgi import Answer, ask

SEEDS = (
    ("ShareGroupDescribeResponse", 1),
    ("StreamsGroupHeartbeatResponse", 0),
    ("ShareFetchRequest", 2),
    ("DescribeQuorumResponse", 1),
)
CAPTURES = Path(__file__).parents[1] / "captures"
MARKUP = '"><img src=x onerror=alert(1)><script>alert(2)</script>'


@pytest.fixture(scope="module")
def app() -> Starlette:
    return create()


def post(app: Starlette, path: str = "/decode.json", **fields: str) -> Answer:
    headers = {"content-type": "application/x-www-form-urlencoded"}
    return ask(app, path, method="POST", headers=headers, body=urlencode(fields).encode())


def upload(
    app: Starlette, content: bytes, name: str = "frame.bin", path: str = "/decode.json", **fields: str
) -> Answer:
    parts = [
        f'--b0rder\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n' for key, value in fields.items()
    ]
    head = f'--b0rder\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
    head += "Content-Type: application/octet-stream\r\n\r\n"
    body = "".join(parts).encode() + head.encode() + content + b"\r\n--b0rder--\r\n"
    return ask(app, path, method="POST", headers={"content-type": "multipart/form-data; boundary=b0rder"}, body=body)


def frame_of(name: str, version: int) -> bytes:
    return encode_frame(name, version, example(name, version), example_header(name, version))


def as_name(name: str, version: int) -> str:
    return "" if name.endswith("Request") else f"{name}:{version}"


def dump(data: bytes) -> str:
    """As xxd writes it."""
    rows = []
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        pairs = " ".join(row[i : i + 2].hex() for i in range(0, len(row), 2))
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        rows.append(f"{at:08x}: {pairs:<39}  {text}")
    return "\n".join(rows)


@pytest.mark.parametrize("dress", ["hex", "base64", "dump", "file", "raw body"])
@pytest.mark.parametrize(("name", "version"), SEEDS)
def test_each_seed_message_is_decoded_in_any_dress(app: Starlette, name: str, version: int, dress: str) -> None:
    data = frame_of(name, version)
    page_values = as_name(name, version)
    if dress == "file":
        answer = upload(app, data, **{"as": page_values})
    elif dress == "raw body":
        query = urlencode({"as": page_values})
        octets = {"content-type": "application/octet-stream"}
        answer = ask(app, f"/decode.json?{query}", method="POST", headers=octets, body=data)
    else:
        text = {"hex": data.hex(), "base64": b64encode(data).decode(), "dump": dump(data)}[dress]
        answer = post(app, data=text, **{"as": page_values})
    assert answer.status == 200, answer.text
    decoded = answer.json["decoded"]
    assert (decoded["message"], decoded["version"], decoded["exact"]) == (name, version, True)
    assert decoded["json"] == to_json(name, version, example(name, version))
    assert b"".join(bytes.fromhex(piece["hex"]) for piece in decoded["bytes"]) == data
    assert decoded["header"]["correlationId"] == 7


@pytest.mark.parametrize(("name", "version"), SEEDS)
def test_a_short_message_has_a_link_that_decodes_it_again(app: Starlette, name: str, version: int) -> None:
    first = post(app, data=frame_of(name, version).hex(), **{"as": as_name(name, version)}).json
    again = ask(app, f"/decode.json?{first['permalink']}")
    assert again.status == 200
    assert again.json["decoded"] == first["decoded"]
    page = ask(app, f"/decode.html?{first['permalink']}").text
    assert escape(first["permalink"]) in page
    for piece in first["decoded"]["bytes"]:
        assert f'data-p="{piece["path"]}"' in page


def test_a_long_message_has_no_link_and_is_decoded_all_the_same(app: Starlette) -> None:
    body = encode("MetadataRequest", 0, {"topics": [{"name": "t" * 1000} for _ in range(3)]})
    value = post(app, data=body.hex(), **{"as": "MetadataRequest:0"}).json
    assert value["decoded"]["exact"]
    assert value["permalink"] is None
    assert ask(app, "/decode.json?" + urlencode({"hex": "00" * (MAX_LINK_BYTES + 1)})).status == 414


def test_a_message_of_many_pieces_is_shown_in_part_and_says_so(app: Starlette) -> None:
    body = encode("OffsetDeleteRequest", 0, {"groupId": "g", "topics": [
        {"name": "t", "partitions": [{"partitionIndex": n} for n in range(MAX_SHOWN_PIECES + 500)]}]})  # fmt: skip
    decoded = post(app, data=body.hex(), **{"as": "OffsetDeleteRequest:0"}).json["decoded"]
    assert decoded["exact"]
    assert len(decoded["bytes"]) == MAX_SHOWN_PIECES
    assert decoded["left"] > 400
    page = post(app, "/decode.html", data=body.hex(), **{"as": "OffsetDeleteRequest:0"}).text
    assert f"{decoded['left']} more pieces aren't shown" in page


def test_long_values_and_lists_are_cut_and_the_page_stays_small(app: Starlette) -> None:
    value = {"groupId": "g", "topics": [{"name": "t" * 30_000, "partitions": []} for _ in range(400)]}
    content = encode("OffsetDeleteRequest", 0, value)
    answers = [
        upload(app, content, path=path, **{"as": "OffsetDeleteRequest:0"}) for path in ("/decode.json", "/decode.html")
    ]
    decoded = answers[0].json["decoded"]
    assert decoded["exact"]
    assert decoded["jsonCut"]
    assert decoded["json"]["topics"][0]["name"].endswith("… 25904 more")
    assert "The JSON is cut" in answers[1].text
    many = encode("OffsetDeleteRequest", 0, value | {"topics": [{"name": "t", "partitions": []}] * 50_000})
    decoded = upload(app, many, **{"as": "OffsetDeleteRequest:0"}).json["decoded"]
    assert len(decoded["json"]["topics"]) < MAX_SHOWN_PIECES
    assert decoded["jsonCut"]


def test_a_release_has_its_own_names(app: Starlette) -> None:
    data = encode("StreamsGroupHeartbeatResponse", 0, {"acceptableRecoveryLagLegacy": 5})
    fields = {"as": "StreamsGroupHeartbeatResponse:0", "release": "4.3"}
    assert post(app, data=data.hex(), **fields).json["decoded"]["json"]["acceptableRecoveryLag"] == 5


def test_why_it_is_not_exact(app: Starlette) -> None:
    data = bytearray(encode("ShareFetchRequest", 2, example("ShareFetchRequest", 2)))
    data[-2:] = b"\x01\x81\x00"[1:]
    decoded = post(app, data=(bytes(data) + b"\x00").hex(), **{"as": "ShareFetchRequest:2"}).json["decoded"]
    assert decoded["problem"] or decoded["reasons"]
    flag = encode("ApiVersionsRequest", 3, {}) + b"\x00\x00"
    shown = post(app, "/decode.html", data=flag.hex(), **{"as": "ApiVersionsRequest:3"}).text
    assert "2 bytes after the message (offset 3)" in shown
    assert "not exact" in shown


@pytest.mark.parametrize("cut", [6, 11, 20, 45, 90, 100, 120, 150])
def test_what_cannot_be_read_says_where_and_shows_what_was_read(app: Starlette, cut: int) -> None:
    whole = frame_of("ShareFetchRequest", 2)
    decoded = post(app, data=whole[:cut].hex()).json["decoded"]
    assert decoded["problem"]
    assert decoded["stopped"] <= cut
    read = b"".join(bytes.fromhex(piece["hex"]) for piece in decoded["bytes"])
    assert read == whole[: decoded["stopped"]]
    assert bytes.fromhex(decoded["unreadHex"]) == whole[decoded["stopped"] : cut]
    page = post(app, "/decode.html", data=whole[:cut].hex()).text
    assert f"Read up to offset {decoded['stopped']} of {cut}" in page
    if cut >= 45:
        assert decoded["message"] == "ShareFetchRequest"
        assert decoded["json"]["groupId"] == "order-processors"


def test_record_batches_inside_a_message_and_alone(app: Starlette) -> None:
    frame = frame_of("ProduceRequest", 9)
    decoded = post(app, data=frame.hex()).json["decoded"]
    assert decoded["records"][0]["batches"][0]["magic"] == 2
    assert any(piece["path"].endswith("batch[0].baseOffset") for piece in decoded["bytes"])
    for record_example in EXAMPLES:
        alone = post(app, data=record_example.data.hex(), **{"as": "records"}).json["decoded"]
        assert alone["records"][0]["batches"][0]["records"], record_example.id
        assert b"".join(bytes.fromhex(piece["hex"]) for piece in alone["bytes"]) == record_example.data


def test_a_recording_shows_its_exchanges_with_links_to_their_messages(app: Starlette) -> None:
    packed = (CAPTURES / "share" / "capture.pcap.xz").read_bytes()
    # Kernels may have to be compiled first.
    deadline = time.monotonic() + 600
    while upload(app, packed).status == 503:
        assert time.monotonic() < deadline
    answers = [upload(app, content, "night.pcap") for content in (packed, lzma.decompress(packed))]
    for answer in answers:
        assert answer.status == 200, answer.text
        recording = answer.json["recording"]
        assert recording["count"] == sum(item["count"] for item in recording["apis"])
        assert recording["left"] == recording["count"] - len(recording["exchanges"])
    fetch = next(
        item for item in recording["exchanges"] if item["api"] == "ShareGroupHeartbeat" and item["response"]["query"]
    )
    for side, name in (("request", "ShareGroupHeartbeatRequest"), ("response", "ShareGroupHeartbeatResponse")):
        linked = ask(app, f"/decode.json?{fetch[side]['query']}").json["decoded"]
        assert (linked["message"], linked["version"], linked["exact"]) == (name, fetch["version"], True)
    page = upload(app, packed, "night.pcap", "/decode.html").text
    assert f"{recording['count']} exchanges in night.pcap" in page


@pytest.mark.parametrize(
    ("fields", "status", "message"),
    [
        ({"data": "abc"}, 422, "odd number of digits"),
        ({"data": ""}, 422, "nothing to decode"),
        ({"data": "  \n"}, 422, "nothing to decode"),
        ({"data": "(nothing)"}, 422, "this isn't hex, a hex dump or base64"),
        ({"data": "0x00 0g"}, 422, "a hex digit"),
        ({"data": "00", "as": "SharFetchRequest:2"}, 404, "did you mean ShareFetchRequest"),
        ({"data": "00", "as": "ShareFetchRequest:99"}, 404, "has no version 99"),
        ({"data": "00", "as": "ShareFetch:2"}, 404, "is an API"),
        ({"data": "00", "as": "ShareFetchRequest:2", "release": "9.9"}, 404, "release 9.9 isn't in the catalog"),
        ({"data": "zz", "form": "hex"}, 422, "a hex digit"),
    ],
)
def test_bad_input_says_what_is_wrong(app: Starlette, fields: dict[str, str], status: int, message: str) -> None:
    for path in ("/decode.json", "/decode.html"):
        answer = post(app, path, **fields)
        assert answer.status == status
        assert message in unescape(answer.text)
        assert "Traceback" not in answer.text
    assert escape(fields["data"], quote=True) in answer.text or not fields["data"].strip()


def test_tls_is_named(app: Starlette) -> None:
    assert "this is TLS, not Kafka" in post(app, data="160301020001").json["decoded"]["problem"]


def send_chunks(app: Starlette, chunks: int, headers: dict[str, str]) -> tuple[int, int]:
    """Status of the answer, and how many chunks of a megabyte were asked for."""
    taken = 0
    sent: list[Message] = []

    async def receive() -> Message:
        nonlocal taken
        taken += 1
        return {"type": "http.request", "body": bytes(1 << 20), "more_body": taken < chunks}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: dict[str, Any] = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
        "path": "/decode.html", "raw_path": b"/decode.html", "query_string": b"", "root_path": "",
        "headers": [(b"host", b"127.0.0.1:80"), *((k.encode(), v.encode()) for k, v in headers.items())],
        "client": ("127.0.0.1", 50_000), "server": ("127.0.0.1", 80),
    }  # fmt: skip
    asyncio.run(app(scope, receive, send))
    return next(message["status"] for message in sent if message["type"] == "http.response.start"), taken


def test_an_upload_of_a_gigabyte_is_refused_before_a_byte_of_it_is_read(app: Starlette) -> None:
    assert send_chunks(app, 1024, {"content-length": str(1 << 30), "content-type": "application/octet-stream"}) == (
        413,
        0,
    )


def test_an_upload_of_unknown_length_is_read_up_to_the_limit(app: Starlette) -> None:
    status, taken = send_chunks(app, 1024, {"transfer-encoding": "chunked"})
    assert status == 413
    assert taken <= MAX_UPLOAD_BYTES // (1 << 20) + 1


def test_a_form_of_another_site_is_refused(app: Starlette) -> None:
    headers = {"content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "cross-site"}
    assert ask(app, "/decode.html", method="POST", headers=headers, body=b"data=00").status == 403


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://evil.com"}, 403),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"origin": "http://127.0.0.1:8080.evil.com"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:8080"}, 200),
        ({"origin": "null", "sec-fetch-site": "same-origin"}, 200),
        ({}, 200),
    ],
)
def test_a_browser_that_names_only_the_origin_is_told_apart_by_it(
    app: Starlette, headers: dict[str, str], status: int
) -> None:
    named = {"content-type": "application/x-www-form-urlencoded", **headers}
    assert ask(app, "/decode.html", method="POST", headers=named, body=b"data=00").status == status


def test_what_the_page_says_is_about_the_page(app: Starlette) -> None:
    unknown = post(app, data="00000001ffffffffffffffff").json["decoded"]["problem"]
    assert "enter the message, as NAME:VERSION" in unknown
    assert "--as" not in unknown
    assert "kafkascope" not in post(app, data="00", **{"as": "Xyzzyqwert:2"}).json["problem"]


@pytest.mark.parametrize("field", ["data", "as", "release", "form", "file"])
def test_markup_in_every_input_comes_out_as_text(app: Starlette, field: str) -> None:
    if field == "file":
        answer = upload(app, b"\x00\x00", MARKUP.replace('"', "'"), "/decode.html")
    else:
        answer = post(app, "/decode.html", **({"data": "0000"} | {field: MARKUP}))
    assert "<img" not in answer.text
    assert "<script>alert" not in answer.text


def test_markup_inside_a_message_comes_out_as_text(app: Starlette) -> None:
    value = {"groupId": MARKUP, "memberId": MARKUP, "generationId": 1}
    frame = encode_frame("HeartbeatRequest", 0, value, {"correlationId": 1, "clientId": MARKUP})
    for data in (frame, frame[:-3]):
        page = post(app, "/decode.html", data=data.hex()).text
        assert "<img" not in page
        assert "<script>alert" not in page
    assert "&lt;img src=x" in page


def test_an_address_holds_no_markup(app: Starlette) -> None:
    page = ask(app, "/decode.html?" + urlencode({"hex": MARKUP, "as": MARKUP, "release": MARKUP})).text
    assert "<img" not in page
    assert "<script>alert" not in page


def test_decoding_that_takes_too_long_is_ended_and_the_next_one_works() -> None:
    worker = DecodeWorker("kafkascope decode", seconds=0.0001)
    try:
        with pytest.raises(InputError, match=r"took more than 0\.0001 s|without a result"):
            worker.decode(b"00", "", "", "auto", "")
        worker._seconds = 60
        assert worker.decode(frame_of("HeartbeatRequest", 0), "", "", "raw", "")["decoded"]["exact"]
        with pytest.raises(UsageError, match="unknown message or API Nope"):
            worker.decode(b"00", "Nope:1", "", "auto", "")
    finally:
        worker.close()


def test_a_process_that_does_not_even_hear_its_alarm_is_ended() -> None:
    worker = DecodeWorker("kafkascope decode", seconds=60)
    try:
        worker.decode(frame_of("HeartbeatRequest", 0), "", "", "raw", "")
        assert worker._process is not None
        os.kill(worker._process.pid, signal.SIGSTOP)
        worker._seconds = 0.2
        with pytest.raises(InputError, match=r"took more than 0\.2 s"):
            worker.decode(b"00", "", "", "auto", "")
    finally:
        worker.close()


def test_decoding_gets_no_more_memory_than_the_limit() -> None:
    code = (
        "from kafkascope.explorer.decode.child import limit_memory, respond\n"
        "limit_memory()\n"
        "try:\n    bytearray(2 << 30)\n    print('taken')\n"
        "except MemoryError:\n    print('refused')\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "refused\n"


def test_the_static_page_says_that_decoding_needs_the_server() -> None:
    page = Renderer(static=True).html(decode.KIND, {})
    assert "kafkascope serve" in page
    assert "kafkascope decode" in page
    assert 'class="decode"' not in page


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data", b""),
        ("multipart/form-data; boundary=x", b"no border at all"),
        ("multipart/form-data; boundary=x", b"--x\r\n\r\nno name\r\n--x--\r\n"),
        ("multipart/form-data; boundary=x", b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\ncut'),
        ("application/x-www-form-urlencoded", b"&".join(b"a=1" for _ in range(100))),
        ("application/x-www-form-urlencoded", b"a=\xff\xfe"),
        ("text/plain", b"a=1"),
    ],
)
def test_a_form_that_is_none_is_refused(kind: str, body: bytes) -> None:
    with pytest.raises(InputError):
        parse_form(kind, body)


def test_a_file_keeps_every_byte() -> None:
    content = bytes(range(256)) + b"\r\n--x\r\n\r\n--"
    body = (
        b'--border\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n'
        + content
        + b"\r\n--border--"
    )
    part = parse_form('multipart/form-data; boundary="border"', body)["file"]
    assert (part.content, part.file) == (content, "a.bin")
