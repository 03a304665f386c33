"""State for the next run with numbers that no run leaves, each of which led a kernel, or the reader, astray."""

import json
from typing import Any

from kafkascope.capture.frames.frame_table import (
    Partial,
)
from kafkascope.capture.tcp.stream_table import (
    Stream,
)
from tests.hostile.carried import case_of, left_by

_FAR = 1 << 40
_PIECES = {"client": 0, "opened": [True, True], "hinted": False, "looked": 0, "named": []}

# Where it is in the state, and what is written there.
FORGED: dict[str, tuple[tuple[str | int, ...], Any]] = {
    "a row that the table of frames does not have": (("streams", 0, "framing"), 32_767),
    "a row far before the table of frames": (("streams", 1, "framing"), -_FAR),
    "early segments listed from a node that is not there": (("streams", 0, "row", Stream.HEAD), 1 << 20),
    "early segments listed to a node that is not there": (("streams", 0, "row", Stream.TAIL), 1 << 20),
    "more early segments than there are": (("streams", 1, "row", Stream.HELD_COUNT), _FAR),
    "a stream that is past the last offset": (("streams", 1, "row", Stream.NEXT), (1 << 63) - 1),
    "bytes of a frame in a chunk that is not there": (("streams", 0, "state", Partial.HEAD), _FAR),
    "more of a length than it has": (("streams", 0, "state", Partial.HAVE), 3),
    "a client on a third side": (("client",), 7),
    "requests asked for by the billion": (("slot", 2), 1 << 62),
    "a slot of too few numbers": (("slot",), [1]),
    "requests without their columns": (("asked",), [[1]]),
    "an unknown protocol": (("protocol",), "gopher"),
    "an unknown end": (("ended",), 99),
    "an address that is none": (("address_a",), "zz"),
    "a port of no machine": (("port_b",), -1),
    "a file that is not listed": (("place",), 7 << 40 | 3),
    "files that are none": (("files",), [[0]]),
    "a time that is none": (("last_ns",), 1 << 70),
    "a number that is text": (("segments",), "many"),
    "a frame without a partner, larger than any": (("waiting",), [[0, 0, 0, _FAR, 0, 0, 0, 0, 0]]),
    "a frame without a partner, of a third side": (("waiting",), [[0, 9, 0, 10, 0, 0, 0, 0, 0]]),
    "pieces of a stream that is not there": (("pieces",), _PIECES | {"entries": [[0, 9, 0, 4, 0, 0]]}),
    "pieces of an unknown kind": (("pieces",), _PIECES | {"entries": [[99, 0, 0, 4, 0, 0]]}),
    "nothing": ((), {}),
    "a list": ((), []),
    "nested lists": ((), json.loads("[" * 500 + "]" * 500)),
}


def forged(name: str) -> bytes:
    """A case of the fuzzer of carried state: every connection that has the place says it."""
    path, value = FORGED[name]
    states = []
    for text in left_by(0, 3):
        state = json.loads(text)
        if not path:
            state = value
        elif _holder(state, path) is not None:
            _holder(state, path)[path[-1]] = value
        states.append(json.dumps(state))
    return case_of(0, 3, states)


def _holder(state: Any, path: tuple[str | int, ...]) -> Any:
    """What has the last of the path; None where there is no such place."""
    for step in path[:-1]:
        state = state[step]
        if state is None:
            return None
    return state if isinstance(state, dict) or len(state) > int(path[-1]) else None
