"""Raw SASL tokens and frames behind them: where the kernel is sure, the careful grading says the same."""

from collections import Counter
from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from kafkascope.capture.frames.detect.start import (
    StartVerdict,
    make_scanning,
)
from kafkascope.capture.frames.frame_table import (
    ConnSlot,
    Partial,
    make_tables,
    with_slots,
)
from kafkascope.capture.frames.scan_program import ScanPrograms
from kafkascope.capture.frames.tokens import IS_FRAME, IS_TOKEN, is_request, is_response, judge
from kafkascope.schema.catalog import apis, message
from tests.support.traffic import request, response

SECRETS = (
    b"\0alice\0open sesame",
    b"alice\0alice\0open sesame",
    b"n,,n=alice,r=fyko+d2lbbFgONRv9qkxdawL",
    b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
    b"n,a=alice,\1auth=Bearer eyJhbGciOiJub25lIn0\1\1",
    b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
    b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
    b'{"status":"invalid_token"}',
    b"\x60\x82\x02\x1d\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x01\0\x6e",
    b"\x05\x04\x01\xff\0\x0c\0\0\0\0\0\0\x27\xd3\xb2\xf1",
)
HANDSHAKE = 70_000


class Judged:
    """A connection behind its handshake, whose correlation id is HANDSHAKE."""

    def __init__(self, requests: dict[int, tuple[int, int]], *, tokens: bool) -> None:
        self.asked, self.tokens = requests, tokens
        self.tables = with_slots(make_tables())
        self.tables.slots[0] = 0
        self.tables.slots[0, ConnSlot.HANDSHAKE_ID] = HANDSHAKE
        self.tables.slots[0, ConnSlot.ASKED] = len(requests)
        self.tables.state[0, Partial.TOKENS] = tokens
        for number, (identity, (key, version)) in enumerate(requests.items()):
            self.tables.asked[0, number] = identity, key, version
        self.programs = ScanPrograms()

    def kernel(self, body: bytes, role: int) -> int:
        held = np.frombuffer(bytearray(body), np.uint8)
        while True:
            scanning = make_scanning(self.programs)
            why = int(judge(self.tables, scanning, np.int64(0), np.int64(role), held, 0, len(body)))
            if why != StartVerdict.COMPILE:
                return why
            self.programs.need(*scanning.wanted.reshape(2, 1))

    def careful(self, body: bytes, role: int) -> int:
        raw = len(body).to_bytes(4, "big") + body
        is_frame = is_response(raw, self.asked, HANDSHAKE, tokens=self.tokens) if role else is_request(raw)
        return IS_FRAME if is_frame else IS_TOKEN


def bodies() -> Iterator[bytes]:
    yield from SECRETS
    for identity in (0, 1, 65_535, 65_536, HANDSHAKE, HANDSHAKE + 63, HANDSHAKE + 64, HANDSHAKE - 64, -1, 1 << 30):
        yield request("Metadata", 12, identity)[4:]
        yield response("Metadata", 12, identity)[4:]
        yield response("ApiVersions", 3, identity)[4:]
    for api in apis().values():
        versions = message(f"{api}Request").all_versions()
        # ControlledShutdown v0 has no client id.
        for version in {min(versions), max(versions)} - ({0} if api == "ControlledShutdown" else set()):
            yield request(api, version, 5)[4:]


def mutated() -> Iterator[bytes]:
    random = Random(7)
    bodies_list = list(bodies())
    for _ in range(3_000):
        body = bytearray(random.choice(bodies_list))
        for _ in range(random.randint(0, 2)):
            body[random.randrange(len(body))] = random.choice((0, 1, 255, random.randrange(256)))
        yield bytes(body[: random.choice((len(body), len(body), random.randint(1, len(body))))])


@pytest.mark.parametrize("tokens", [True, False])
@pytest.mark.parametrize("requests", [{}, {1 << 30: (3, 12), 5: (18, 3), -1: (900, 0)}])
def test_the_kernel_is_sure_of_nothing_that_grading_denies(requests: dict[int, tuple[int, int]], tokens: bool) -> None:
    judged = Judged(requests, tokens=tokens)
    sure: Counter[tuple[int, int]] = Counter()
    for body in (*bodies(), *mutated()):
        for role in (0, 1):
            verdict = judged.kernel(body, role)
            sure[role, verdict] += 1
            assert verdict == StartVerdict.UNSURE or verdict == judged.careful(body, role), (role, body)
    assert min(sure[0, IS_TOKEN], sure[0, IS_FRAME], sure[1, IS_FRAME]) > 100
    assert tokens == (sure[1, IS_TOKEN] > 100)


def test_the_kernel_is_sure_of_what_clients_send() -> None:
    judged = Judged({}, tokens=True)
    assert [judged.kernel(secret, 0) for secret in SECRETS] == [IS_TOKEN] * len(SECRETS)
    assert [judged.kernel(secret, 1) for secret in SECRETS] == [IS_TOKEN] * len(SECRETS)
    assert judged.kernel(request("ApiVersions", 3, 2)[4:], 0) == IS_FRAME
    assert judged.kernel(response("ApiVersions", 3, 2)[4:], 1) == IS_FRAME
