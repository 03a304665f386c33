"""Records that the clients of the recorded incidents say they wrote and read are those that the captures carry."""

import base64
import struct
from collections import Counter
from collections.abc import Iterator
from uuid import UUID

import pytest

from tests.capture.same_exchanges import captured
from tests.capture.truth_events import events, topic_ids
from tests.captures import NAMES, recording

# KIP-98's batch: base offset, length, leader epoch, magic, crc, attributes, last offset delta
_BATCH = struct.Struct(">qiibIhi")
_CONTROL, _AFTER_LENGTH = 0x20, 12
WITHIN_TLS = {"java-4.3-tls"}
SENDS_AGAIN = {"sensors", "web-shop"}  # while a broker was frozen


def batches(records: bytes | None) -> Iterator[tuple[int, int]]:
    """(first, last) offset of every whole batch that carries data; all of these recordings are of magic 2."""
    at = 0
    while records is not None and len(records) - at >= _BATCH.size:
        base, length, _, magic, _, attributes, delta = _BATCH.unpack_from(records, at)
        assert magic == 2
        at += _AFTER_LENGTH + length
        if at <= len(records) and not attributes & _CONTROL:
            yield base, base + delta


def produced(name: str, who: str) -> Iterator[tuple[str, int, int]]:
    """(topic, partition, offset): the answer tells where the first record of a batch went."""
    names = {topic_id: topic for topic, topic_id in topic_ids(name).items()}
    for exchange in captured(name):
        if exchange.api != "Produce" or exchange.client_id != who or exchange.request is None:
            continue
        answers = {
            (topic.get("topicId") or topic["name"], place["index"]): place["baseOffset"]
            for topic in (exchange.response.value["responses"] if exchange.response else ())
            for place in topic["partitionResponses"]
        }
        for topic in exchange.request.value["topicData"]:
            key = topic.get("topicId") or topic["name"]
            topic_name = topic.get("name") or names[_text(key)]
            for place in topic["partitionData"]:
                base = answers.get((key, place["index"]))
                for first, last in batches(place["records"]):
                    for number in range(last - first + 1):
                        yield topic_name, place["index"], -1 if base is None else base + number


def _text(topic_id: object) -> str:
    assert isinstance(topic_id, UUID)
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


PRODUCERS = [
    (name, who)
    for name in NAMES
    for who in sorted({event["who"] for event in events(name, "produced")})
    if who not in WITHIN_TLS
]


@pytest.mark.parametrize(("name", "who"), PRODUCERS, ids=lambda value: str(value))
def test_produced_records_are_where_the_client_says_they_went(name: str, who: str) -> None:
    expected = Counter((e["topic"], e["partition"], e["offset"]) for e in events(name, "produced", who))
    made = Counter(produced(name, who))
    # a producer sends again what got no response in time, and the broker may have written it the first time
    assert expected <= made if who in SENDS_AGAIN else expected == made
    assert expected


CONSUMERS = sorted({event["who"] for event in events("clients", "consumed")} - WITHIN_TLS)


@pytest.mark.parametrize("who", CONSUMERS)
def test_consumed_records_were_fetched_by_the_client(who: str) -> None:
    names = {topic_id: topic for topic, topic_id in topic_ids("clients").items()}
    fetched = set()
    for exchange in captured("clients"):
        if exchange.api == "Fetch" and exchange.client_id == who and exchange.response is not None:
            for topic in exchange.response.value["responses"]:
                topic_name = topic.get("topic") or names[_text(topic["topicId"])]
                for place in topic["partitions"]:
                    fetched |= {
                        (topic_name, place["partitionIndex"], offset)
                        for first, last in batches(place["records"])
                        for offset in range(first, last + 1)
                    }
    expected = {(e["topic"], e["partition"], e["offset"]) for e in events("clients", "consumed", who)}
    assert expected and expected <= fetched


def test_only_the_client_within_tls_is_out_of_sight() -> None:
    seen = {exchange.client_id for exchange in captured("clients")}
    assert {e["who"] for e in events("clients", "started")} - seen == WITHIN_TLS
    assert "TLS" in recording("clients")["ports"]["1"]
