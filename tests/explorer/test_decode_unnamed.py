"""The decode page given bytes without a name: responses that read one way, words that are no bytes, several frames."""

from base64 import b64encode

import pytest
from starlette.applications import Starlette

from kafkascope.codec.frame import encode_frame
from kafkascope.codec.json_form import to_json
from kafkascope.codec.message import encode
from kafkascope.explorer.server.app import create
from kafkascope.schema.layouts.examples import example
from tests.explorer.asgi import ask
from tests.explorer.test_decode import SEEDS, dump, frame_of, post


@pytest.fixture(scope="module")
def app() -> Starlette:
    return create()


@pytest.mark.parametrize(("name", "version"), [seed for seed in SEEDS if seed[0].endswith("Response")])
def test_a_response_without_its_name_that_reads_one_way_is_decoded_and_says_so(
    app: Starlette, name: str, version: int
) -> None:
    frame = frame_of(name, version)
    decoded = post(app, data=frame.hex()).json["decoded"]
    assert (decoded["message"], decoded["version"], decoded["exact"]) == (name, version, True)
    assert decoded["assumed"] == f"{name}:{version}"
    assert decoded["json"] == to_json(name, version, example(name, version))
    for other in decoded["guesses"]:
        assert other != decoded["assumed"]
        assert other.partition(":")[0] == name
        assert post(app, data=frame.hex(), **{"as": other}).json["decoded"]["exact"]
    page = post(app, "/decode.html", data=frame.hex()).text
    assert "A response doesn't name itself" in page
    for other in decoded["guesses"]:
        assert f"as={other}" in page


def test_what_is_named_is_not_assumed(app: Starlette) -> None:
    frame = frame_of("DescribeQuorumResponse", 1)
    assert post(app, data=frame.hex(), **{"as": "DescribeQuorumResponse:1"}).json["decoded"]["assumed"] is None
    assert post(app, data=frame_of("ShareFetchRequest", 2).hex()).json["decoded"]["assumed"] is None


def test_a_response_that_fits_several_apis_is_told_which(app: Starlette) -> None:
    frame = frame_of("HeartbeatResponse", 4)
    decoded = post(app, data=frame.hex()).json["decoded"]
    assert len({guess.partition(":")[0] for guess in decoded["guesses"]}) > 1
    assert "HeartbeatResponse:4" in decoded["guesses"]
    assert (decoded["message"], decoded["bytes"], decoded["assumed"]) == (None, [], None)
    page = post(app, "/decode.html", data=frame.hex()).text
    assert "as=HeartbeatResponse:4" in page


@pytest.mark.parametrize("word", ["zzzz", "decode", "ShareFetch", "hello"])
def test_a_word_is_not_taken_for_base64(app: Starlette, word: str) -> None:
    response = post(app, data=word)
    assert response.status == 422
    assert response.json["problem"] == "this isn't hex, a hex dump or base64"


def test_the_page_says_how_the_text_was_read(app: Starlette) -> None:
    data = frame_of("ShareFetchRequest", 2)
    for text, read_as in ((data.hex(), "hex"), (b64encode(data).decode(), "base64"), (dump(data), "dump")):
        assert post(app, data=text).json["readAs"] == read_as
    assert "read as base64" in post(app, "/decode.html", data=b64encode(data).decode()).text


def test_what_is_no_bytes_is_not_sent_to_the_command_line(app: Starlette) -> None:
    response = post(app, data="%zz")
    assert response.status == 422
    assert response.json["problem"] == "this isn't hex, a hex dump or base64"


def test_bytes_that_are_cut_say_so_and_are_not_offered_as_the_hex_of_the_message(app: Starlette) -> None:
    short, long = (encode("SaslAuthenticateRequest", 1, {"authBytes": bytes(size)}) for size in (50, 5_000))
    fields = {"as": "SaslAuthenticateRequest:1"}
    assert 'data-copy="decoded-hex"' in post(app, "/decode.html", data=short.hex(), **fields).text
    page = post(app, "/decode.html", data=long.hex(), **fields).text
    assert 'data-copy="decoded-hex"' not in page
    assert f"{len(long)} bytes, not all shown" in page
    assert "00 … 904 more</span>" in page


def test_several_frames_are_several_results_with_links(app: Starlette) -> None:
    first, second = frame_of("ShareFetchRequest", 2), frame_of("MetadataRequest", 12)
    decoded = post(app, data=(first + second + second[:9]).hex()).json["decoded"]
    assert (decoded["message"], decoded["exact"], decoded["size"], decoded["problem"]) == (
        "ShareFetchRequest",
        True,
        len(first),
        None,
    )
    behind, cut = decoded["others"]
    assert (behind["at"], behind["size"], behind["missing"]) == (len(first), len(second), 0)
    assert (cut["at"], cut["size"], cut["missing"]) == (len(first + second), 9, len(second) - 9)
    linked = ask(app, f"/decode.json?{behind['query']}").json["decoded"]
    assert (linked["message"], linked["exact"], linked["others"]) == ("MetadataRequest", True, [])
    assert (behind["decoded"]["message"], behind["decoded"]["exact"]) == ("MetadataRequest", True)
    assert cut["decoded"]["problem"]
    page = post(app, "/decode.html", data=(first + second + second[:9]).hex()).text
    assert 'id="decoded-2-json"' in page
    assert "3 frames in the input" in page
    assert f"frame 3 at {len(first + second)}" in page


def test_of_several_responses_the_first_is_read_as_what_it_is_said_to_be(app: Starlette) -> None:
    frame = frame_of("DescribeQuorumResponse", 1)
    decoded = post(app, data=(frame + frame).hex(), **{"as": "DescribeQuorumResponse:1"}).json["decoded"]
    assert (decoded["exact"], decoded["others"][0]["at"]) == (True, len(frame))
    assert ask(app, f"/decode.json?{decoded['others'][0]['query']}").json["decoded"]["exact"]
    unnamed = post(app, data=(frame + frame).hex()).json["decoded"]
    assert (unnamed["assumed"], unnamed["size"]) == ("DescribeQuorumResponse:1", len(frame))
    assert unnamed["others"][0]["decoded"]["assumed"] == "DescribeQuorumResponse:1"


def test_many_short_frames_are_no_message_of_a_version_that_there_is_not(app: Starlette) -> None:
    # Read without its length the first would be a ProduceRequest v14.
    frame = encode_frame("ListGroupsRequest", 0, {}, {"correlationId": 1, "clientId": "four"})
    assert frame[:4] == bytes.fromhex("0000000e")
    decoded = post(app, data=(frame * 300).hex()).json["decoded"]
    assert (decoded["message"], decoded["exact"]) == ("ListGroupsRequest", True)
    assert len(decoded["others"]) + decoded["othersLeft"] == 299
    assert [other["decoded"] is not None for other in decoded["others"]] == [True] * 7 + [False] * (
        len(decoded["others"]) - 7
    )
