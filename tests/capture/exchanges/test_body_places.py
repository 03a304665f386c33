"""Where bodies lie, against the frames of the exchanges that they are in."""

from collections import Counter
from io import BytesIO

import pytest

from kafkascope.capture.base.flow import (
    FrameKind,
)
from kafkascope.capture.exchanges.bodies import read_frame
from kafkascope.capture.exchanges.body_places import places_of
from kafkascope.capture.exchanges.exchange import inner_frames
from kafkascope.capture.exchanges.facts import ENVELOPE
from kafkascope.capture.frames.headers import (
    Frame,
)
from kafkascope.capture.reader import Reading
from kafkascope.codec.frame import encode_frame
from tests.captures import NAMES, capture
from tests.support.packet_build import Talk, pcap


@pytest.mark.parametrize("name", NAMES)
def test_every_body_is_there_once_with_its_message_and_version(name: str) -> None:
    for batch in Reading(BytesIO(capture(name))).batches():
        places = places_of(batch)
        assert len(set(places.kinds)) == len(places.kinds) == len(places.starts) - 1
        bodies: Counter[tuple[str | None, int, int, bytes]] = Counter()
        for (message, version), start, end in zip(places.kinds, places.starts, places.starts[1:], strict=False):
            for at in range(start, end):
                size = places.ends[at + 1] - places.ends[at]
                body = places.content.bytes(int(places.places[at]), int(size))
                bodies[message, version, int(places.exchanges[at]), body] += 1
        expected: Counter[tuple[str | None, int, int, bytes]] = Counter()
        for index in range(len(batch)):
            request, response = batch.request_frame(index), batch.response_frame(index)
            if request is None or batch.rows[batch.request[index], Frame.KIND] != FrameKind.FRAME:
                continue
            frames = [(read_frame(request, None), request)]
            if response is not None:
                frames.append((read_frame(response, (frames[0][0].api_key, frames[0][0].version)), response))
            parts = [(frame, bytes(4) + content) for frame, content in frames]
            if frames[0][0].api_key == ENVELOPE:
                parts += inner_frames(request, response)
            for frame, content in parts:
                expected[frame.name, frame.version, index, content[frame.body_at :]] += 1
        assert bodies == expected


def test_a_message_that_nobody_knows_has_a_place_and_no_bytes() -> None:
    talk = Talk().open()
    for number in range(2):
        header = {"correlationId": number, "clientId": "app"}
        talk.say(0, encode_frame("HeartbeatRequest", 4, {"groupId": "g", "memberId": "m"}, header))
        talk.say(1, encode_frame("HeartbeatResponse", 4, {}, {"correlationId": number}))
    frame = bytes.fromhex("00c80005 00000009 0003 617070 aabbcc")
    talk.say(0, len(frame).to_bytes(4, "big") + frame).say(1, bytes.fromhex("00000005 00000009 00"))
    (batch,) = Reading(BytesIO(pcap(talk.packets))).batches()
    places = places_of(batch)
    at = places.kinds.index((None, 0))
    start, end = places.starts[at : at + 2]
    assert places.ends[end] == places.ends[start]
