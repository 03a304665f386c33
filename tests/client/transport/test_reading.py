"""Responses of a live connection are read as what they are: frames without a length."""

import asyncio

from kafkascope.client.transport.reading import read_response
from kafkascope.codec.frame import decode_frame, encode_frame
from kafkascope.schema.layouts.layout import layout
from kafkascope.schema.layouts.samples import sample


def test_a_correlation_id_that_equals_the_bytes_after_it_is_no_length() -> None:
    """This one also decodes, to its last byte, as a length and a shorter response."""
    value = sample(layout("StreamsGroupHeartbeatResponse", 1), 9)
    frame = encode_frame("StreamsGroupHeartbeatResponse", 1, value, {"correlationId": 279}, length=False)
    assert len(frame) == 4 + 279
    assert decode_frame(frame, response_to=("StreamsGroupHeartbeat", 1)).length == 279
    assert asyncio.run(read_response("StreamsGroupHeartbeat", 1, frame)).value == value
