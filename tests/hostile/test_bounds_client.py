"""What brokers and token endpoints of strangers make a client hold, measured in a process of its own."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from kafkascope import limits
from kafkascope.client.transport.dialling import BUFFER_BYTES
from tests.client.evil_broker import LARGE_BYTES, NODES, evil
from tests.hostile.child import run

MIB = 1 << 20
# Of a stream: asyncio stops to read when twice the limit waits, and has a piece in its hands.
BUFFERED = 2 * BUFFER_BYTES + 262_144
ENDPOINT = """
import asyncio
from kafkascope.client.auth.oauth import token_of
from kafkascope.client.settings import Sasl, Secret
from kafkascope.errors import ReachError
def ask(url):
    try:
        asyncio.run(token_of(Sasl("OAUTHBEARER", token_url=url, token_client_id="i", token_client_secret=Secret("s"))))
    except ReachError as error:
        print(str(error).rpartition(": ")[2])
ask("http://127.0.0.1:1/")
"""


@contextmanager
def endpoint(parts: Callable[[], Iterator[bytes]]) -> Iterator[str]:
    """Sends them for as long as its one client takes them."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            link, _ = listener.accept()
            with link, suppress(OSError):
                link.recv(65_536)
                for part in parts():
                    link.sendall(part)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        thread.join()


def endless(first: bytes, part: bytes) -> Callable[[], Iterator[bytes]]:
    """64 times the cap."""

    def parts() -> Iterator[bytes]:
        yield first
        for _ in range(64 * limits.MAX_TOKEN_ANSWER_BYTES // len(part)):
            yield part

    return parts


OK = b"HTTP/1.1 200 OK\r\n"
# An array of empty objects: the dearest JSON.
ARRAY = b"[" + b",".join([b"{}"] * (limits.MAX_TOKEN_ANSWER_BYTES // 3)) + b"]"
TOKENS = {
    "without a length": (endless(OK + b"\r\n", b"x" * 65_536), 4 * MIB),
    "in chunks": (endless(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"8000\r\n" + b"x" * 32_768 + b"\r\n"), 4 * MIB),
    "of a length": (endless(OK + b"Content-Length: 67108864\r\n\r\n", b"x" * 65_536), 4 * MIB),
    "head": (endless(OK, b"x: " + b"y" * 1_000 + b"\r\n"), 4 * MIB),
    # As Python values it takes thirty times its size, as a line of a log.
    "of JSON": (lambda: iter([OK + b"\r\n" + ARRAY]), 32 * MIB),
}


@pytest.mark.parametrize("form", TOKENS)
def test_the_answer_of_a_token_endpoint_takes_what_its_cap_says(form: str) -> None:
    """MAX_TOKEN_ANSWER_BYTES: in the buffer of the socket, in the body, and while one is added to the other."""
    parts, most = TOKENS[form]
    with endpoint(parts) as url:
        ran = run(ENDPOINT, f"ask({url!r})")
    assert ran.output.splitlines()[-1] in (
        "the token endpoint sent no complete HTTP response",
        "the token endpoint's response has no access_token",
    )
    assert ran.peak < most


CAREFUL = """
import asyncio
from kafkascope.client.transport.reading import read_response, weigh_response
from kafkascope.errors import DecodeError
from tests.client.transport.test_response_size import groups_frame
async def read(frame):
    try:
        print(len((await read_response("ListGroups", 5, frame)).value["groups"]))
    except DecodeError as error:
        print(str(error).partition(" bytes ")[2])
def weight(count):
    frame = groups_frame(count)
    return len(frame) + asyncio.run(weigh_response("ListGroups", 5, frame, 1 << 40))[0].memory
one = weight(2_000) - weight(1_999)
asyncio.run(read(groups_frame(2_000) + bytes(1)))
"""


def test_a_response_that_is_read_carefully_takes_what_its_cap_says() -> None:
    """MAX_CAREFUL_MEMORY_BYTES: the largest that fits, then one that weighs eight times as much."""
    code = f"""
count = 2_000 + ({limits.MAX_CAREFUL_MEMORY_BYTES} - weight(2_000)) // one - 1
asyncio.run(read(groups_frame(count) + bytes(1)))
print(count)
asyncio.run(read(groups_frame(8 * count) + bytes(1)))
"""
    ran = run(CAREFUL, code)
    _, read, count, refused = ran.output.splitlines()
    assert (read, refused) == (count, "isn't in the form that Kafka writes")
    assert limits.MAX_CAREFUL_MEMORY_BYTES / 2 < ran.peak < limits.MAX_CAREFUL_MEMORY_BYTES + 4 * MIB


ROUND = """
import asyncio
from kafkascope.client import connect
from kafkascope.client.transport.reading import HeavyError
from kafkascope.client.targets import Node
async def ask(host, nodes, keep):
    async with connect(host, timeout=300.0) as cluster:
        kept, refused = [], 0
        async def one(node):
            nonlocal refused
            try:
                answer = await cluster.call("ListTransactions", {}, to=Node(node))
            except HeavyError:
                refused += 1
                return
            kept.append(answer if keep else len(answer.response_bytes))
        with cluster.together() if keep else cluster.look():
            await asyncio.gather(*map(one, nodes))
        print(len(kept), refused)
"""


def test_large_responses_come_one_at_a_time() -> None:
    """MAX_SIDE_BY_SIDE_BYTES: sixteen nodes send 8 MB each. One of them is there, with its values, and of the others
    what their streams buffer."""
    with evil("large") as host:
        ran = run(ROUND, f"asyncio.run(ask({host!r}, range({NODES['large']}), False))")
    assert ran.output == f"{NODES['large']} 0"
    assert ran.peak < 2 * LARGE_BYTES + NODES["large"] * BUFFERED + 8 * MIB


def test_responses_of_a_round_take_what_their_cap_says() -> None:
    """MAX_RESPONSE_MEMORY_BYTES: of sixteen that are asked for at the same time those are kept that fit."""
    with evil("large") as host:
        ran = run(ROUND, f"asyncio.run(ask({host!r}, range({NODES['large']}), True))")
    kept, refused = map(int, ran.output.split())
    assert kept > 1 and refused > 1
    assert ran.peak < limits.MAX_RESPONSE_MEMORY_BYTES + 2 * LARGE_BYTES + NODES["large"] * BUFFERED + 8 * MIB


OBSERVED = """
import asyncio
from kafkascope.cli.live.observe_run import ObserveOptions, _Run, _Stop
from kafkascope.client import connect
from kafkascope.client.observe.observer import Observer
from kafkascope.lake.home import make_lake
from kafkascope.pipeline.observed import ObservationWriter
writer = ObservationWriter(make_lake(sys.argv[1]), "somewhere", "run")
writer.load()
async def observe(host, polls):
    async with connect(host, timeout=300.0) as cluster:
        asked = ObserveOptions("", 1, None, False, (), 10**12)
        observing = _Run(asked, Observer(cluster), writer, _Stop())
        for _ in range(polls):
            await observing._poll()
        await observing.finish()
        print(writer.totals.commits, writer.totals.rows["list_transactions_response"])
"""
# What a commit of any size takes beside its frames: a batch of them as columns and as files, and what allocators keep.
LANDING_BYTES = 448 * MIB


def test_answers_that_wait_for_a_commit_take_what_their_cap_says(tmp_path: Path) -> None:
    """MAX_OBSERVED_BYTES: those that are being committed, those that come meanwhile, and no more."""
    polls = 8 * limits.MAX_OBSERVED_BYTES // LARGE_BYTES
    with evil("large-one") as host:
        ran = run(OBSERVED, f"asyncio.run(observe({host!r}, {polls}))", str(tmp_path / "lake"))
    commits, rows = map(int, ran.output.split())
    assert (commits, rows) == (8, polls)
    assert ran.peak < 2 * limits.MAX_OBSERVED_BYTES + LANDING_BYTES


SHARED = """
from uuid import UUID
from kafkascope.client.share.member import ShareMember
from kafkascope.client.share.membership import Membership
from kafkascope.client.share.values import FetchLimits
TOPIC = UUID(int=9)
def fill(nodes, size):
    member = ShareMember(Membership("g", "m", ("orders",)), FetchLimits())
    numbers = list(range(nodes))
    assignment = {"topicPartitions": [{"topicId": TOPIC, "partitions": numbers}]}
    joined = {"errorCode": 0, "memberEpoch": 1, "heartbeatIntervalMs": 5_000, "assignment": assignment}
    (heartbeat,) = member.poll(0.0, fetch=True)
    member.received(heartbeat, joined, 0.0)
    (metadata,) = member.poll(0.0, fetch=True)
    leaders = [{"partitionIndex": n, "leaderId": n, "leaderEpoch": 1} for n in numbers]
    member.received(metadata, {"topics": [{"topicId": TOPIC, "name": "orders", "partitions": leaders}]}, 0.0)
    asked = 0
    for turn in range(nodes):
        sends = member.poll(0.0, fetch=True)
        asked = max(asked, len(sends))
        for send in sends:
            acquired = [{"firstOffset": 0, "lastOffset": 9, "deliveryCount": 1}]
            row = {"partitionIndex": send.node, "errorCode": 0, "acknowledgeErrorCode": 0, "records": bytes(size)}
            row["acquiredRecords"] = acquired
            topics = [{"topicId": TOPIC, "partitions": [row]}]
            value = {"errorCode": 0, "acquisitionLockTimeoutMs": 30_000, "responses": topics}
            member.received(send, value, 0.0)
    print(asked, member.counts.ignored)
fill(1, 1)
"""


def test_records_that_wait_for_the_application_take_what_their_cap_says() -> None:
    """MAX_BUFFERED_RECORD_BYTES: of twenty brokers eight are asked at once, and each sends more than that."""
    size = 60 * MIB
    ran = run(SHARED, f"fill(20, {size})")
    asked, ignored = map(int, ran.output.split()[-2:])
    assert asked == 8 and ignored > 0
    assert ran.peak < limits.MAX_BUFFERED_RECORD_BYTES + size + 8 * MIB
