"""Summarizes the bodies of an exchange in a few words: groups, members, topics, counts. Never shows contents of records
or secrets."""

from collections import Counter
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from kafkascope.cli.terminal import shortened
from kafkascope.errors import DecodeError
from kafkascope.formatting import count, printable, size

if TYPE_CHECKING:
    from kafkascope.capture.exchanges.exchange import Exchange
    from kafkascope.codec.result import Decoded

Value = dict[str, Any]

# More names than these become a count.
MOST_NAMES = 2
# A member id is a name and a uuid: its start identifies a member.
MEMBER_LETTERS = 16
SOFTWARE_LETTERS = 60
ACKNOWLEDGE_TYPES = ("gap", "accepted", "released", "rejected", "renewed")


def summary(exchange: "Exchange") -> str:
    """Empty if there is nothing to summarize."""
    if exchange.api == "SaslToken":
        return "SASL token, hidden"
    inner = exchange.inner()
    if inner:
        bodies = [frame.body for frame in inner]
        name = f"{inner[0].api or inner[0].api_key} v{inner[0].version}"
        words = _words_of(inner[0].api, bodies[0], bodies[1] if len(bodies) > 1 else None, exchange)
        return ", ".join((f"holds {name}", *words))
    return ", ".join(_words_of(exchange.api, _body(exchange, "request"), _body(exchange, "response"), exchange))


def _body(exchange: "Exchange", side: str) -> "Decoded | None":
    try:
        body: Decoded | None = getattr(exchange, side)
    except DecodeError:
        return None
    return body


def _words_of(
    api: str | None, request: "Decoded | None", response: "Decoded | None", exchange: "Exchange"
) -> list[str]:
    words: list[str] = []
    if exchange.groups:
        words.append(names("group", exchange.groups))
    if exchange.members and len(exchange.members) == 1:
        words.append(f"member {shortened(exchange.members[0], MEMBER_LETTERS)}")
    if exchange.topics:
        words.append(names("topic", exchange.topics))
    special = _SPECIAL.get(api or "")
    if special is not None and request is not None:
        words += special(request.value, response.value if response is not None else {})
    return [word for word in words if word]


def names(noun: str, values: Collection[str]) -> str:
    """`topic orders`, `topics orders,payments`, `12 topics`."""
    if len(values) > MOST_NAMES:
        return f"{len(values)} {noun}s"
    return f"{noun}{'s' if len(values) > 1 else ''} {','.join(map(printable, values))}"


def _inner(value: Value, *path: str) -> list[Any]:
    """Everything at a path through arrays."""
    items: list[Any] = [value]
    for name in path:
        next_found: list[Any] = []
        for item in items:
            content = item.get(name)
            if content is not None:
                next_found += content if isinstance(content, list) else [content]
        items = next_found
    return items


def _records_bytes(value: Value, *path: str) -> int:
    return sum(len(records) for records in _inner(value, *path))


def _produce(request: Value, _: Value) -> list[str]:
    partitions = len(_inner(request, "topicData", "partitionData"))
    data = _records_bytes(request, "topicData", "partitionData", "records")
    acks = {0: "acks 0", 1: "acks 1"}.get(request["acks"], "")
    transaction = request.get("transactionalId")
    return [
        count(partitions, "partition"),
        f"{size(data)} of records" if data else "",
        acks,
        f"transaction {shortened(transaction, 24)}" if transaction else "",
    ]


def _fetch(request: Value, response: Value) -> list[str]:
    partitions = len(_inner(request, "topics", "partitions"))
    data = _records_bytes(response, "responses", "partitions", "records")
    session = request.get("sessionId", 0)
    return [
        count(partitions, "partition") if partitions else "",
        f"session {session} epoch {request['sessionEpoch']}" if session else "",
        (f"{size(data)} of records" if data else "nothing new") if response else "",
    ]


def _acknowledged(request: Value) -> list[str]:
    counter: Counter[str] = Counter()
    for batch in _inner(request, "topics", "partitions", "acknowledgementBatches"):
        kinds = batch["acknowledgeTypes"]
        records = batch["lastOffset"] - batch["firstOffset"] + 1
        for kind in kinds:
            word = ACKNOWLEDGE_TYPES[kind] if 0 <= kind < len(ACKNOWLEDGE_TYPES) else f"type {kind}"
            counter[word] += records if len(kinds) == 1 else 1
    return [f"{number} {word}" for word, number in counter.items()]


def _share_fetch(request: Value, response: Value) -> list[str]:
    acquired = _inner(response, "responses", "partitions", "acquiredRecords")
    records = sum(batch["lastOffset"] - batch["firstOffset"] + 1 for batch in acquired)
    again = max((batch["deliveryCount"] for batch in acquired), default=0)
    return [
        f"epoch {request['shareSessionEpoch']}",
        *_acknowledged(request),
        (f"{records} acquired" if records else "nothing acquired") if response else "",
        f"delivery {again}" if again > 1 else "",
    ]


def _share_acknowledge(request: Value, _: Value) -> list[str]:
    return [f"epoch {request['shareSessionEpoch']}", *_acknowledged(request)]


def _heartbeat(request: Value, response: Value) -> list[str]:
    sent_epoch, answered = request.get("memberEpoch"), response.get("memberEpoch")
    leaving = {-1: "leaves", -2: "leaves for a while"}.get(sent_epoch or 0)
    words = [leaving or f"epoch {sent_epoch}" + (f" to {answered}" if answered not in (None, sent_epoch) else "")]
    for name, noun in (("activeTasks", "active"), ("standbyTasks", "standby"), ("warmupTasks", "warm-up")):
        tasks = response.get(name)
        if tasks is not None:
            words.append(f"{sum(len(task['partitions']) for task in tasks)} {noun}")
    partitions = (response.get("assignment") or {}).get("topicPartitions")
    if partitions is not None:
        words.append(count(sum(len(topic["partitions"]) for topic in partitions), "partition"))
    return words


def _join(_: Value, response: Value) -> list[str]:
    if not response:
        return []
    leads = response.get("leader") and response.get("leader") == response.get("memberId")
    return [f"generation {response['generationId']}", "leads" if leads else ""]


def _generation(request: Value, _: Value) -> list[str]:
    return [f"generation {request['generationId']}"]


def _metadata(request: Value, response: Value) -> list[str]:
    everything = request.get("topics") is None
    return ["all topics" if everything else "", count(len(response.get("brokers") or ()), "broker") if response else ""]


def _api_versions(request: Value, response: Value) -> list[str]:
    software = " ".join(request.get(name) or "" for name in ("clientSoftwareName", "clientSoftwareVersion"))
    return [shortened(software.strip(), SOFTWARE_LETTERS), count(len(response["apiKeys"]), "API") if response else ""]


def _coordinator(_: Value, response: Value) -> list[str]:
    nodes = {
        coordinator["nodeId"]
        for coordinator in response.get("coordinators") or ([response] if "nodeId" in response else [])
    }
    return [f"node {node}" for node in sorted(nodes) if node >= 0][:MOST_NAMES]


def _offsets(request: Value, _: Value) -> list[str]:
    partitions = len(_inner(request, "topics", "partitions")) + len(
        _inner(request, "groups", "topics", "partitionIndexes")
    )
    return [count(partitions, "partition")] if partitions else []


def _mechanism(request: Value, _: Value) -> list[str]:
    return [shortened(request["mechanism"], 24)]


def _hidden_token(_: Value, __: Value) -> list[str]:
    return ["token, hidden"]


def _producer(request: Value, response: Value) -> list[str]:
    transaction = request.get("transactionalId")
    producer_id = response.get("producerId", -1)
    return [
        f"transaction {shortened(transaction, 24)}" if transaction else "",
        f"producer {producer_id} epoch {response['producerEpoch']}" if producer_id >= 0 else "",
    ]


def _transaction(request: Value, _: Value) -> list[str]:
    transaction = request.get("transactionalId") or request.get("v3AndBelowTransactionalId")
    committed = {True: "commits", False: "aborts"}.get(request.get("committed"), "")  # type: ignore[arg-type]
    return [f"transaction {shortened(transaction, 24)}" if transaction else "", committed]


def _quorum(_: Value, response: Value) -> list[str]:
    words = []
    for partition in _inner(response, "topics", "partitions")[:1]:
        words += [f"leader {partition['leaderId']}", f"epoch {partition['leaderEpoch']}"]
        words += [count(len(partition["currentVoters"]), "voter"), count(len(partition["observers"]), "observer")]
    return words


def _vote(request: Value, response: Value) -> list[str]:
    votes = _inner(request, "topics", "partitions")[:1]
    answered = _inner(response, "topics", "partitions")[:1]
    words = [f"epoch {vote['replicaEpoch']} for node {vote['replicaId']}" for vote in votes]
    return words + ["granted" if result["voteGranted"] else "refused" for result in answered]


def _broker_heartbeat(request: Value, response: Value) -> list[str]:
    return [f"node {request['brokerId']}", "fenced" if response.get("isFenced") else ""]


_SPECIAL: dict[str, Callable[[Value, Value], list[str]]] = {
    "Produce": _produce,
    "Fetch": _fetch,
    "ShareFetch": _share_fetch,
    "ShareAcknowledge": _share_acknowledge,
    "ConsumerGroupHeartbeat": _heartbeat,
    "ShareGroupHeartbeat": _heartbeat,
    "StreamsGroupHeartbeat": _heartbeat,
    "JoinGroup": _join,
    "SyncGroup": _generation,
    "Heartbeat": _generation,
    "Metadata": _metadata,
    "ApiVersions": _api_versions,
    "FindCoordinator": _coordinator,
    "OffsetCommit": _offsets,
    "OffsetFetch": _offsets,
    "ListOffsets": _offsets,
    "SaslHandshake": _mechanism,
    "SaslAuthenticate": _hidden_token,
    "InitProducerId": _producer,
    "AddPartitionsToTxn": _transaction,
    "EndTxn": _transaction,
    "TxnOffsetCommit": _transaction,
    "DescribeQuorum": _quorum,
    "Vote": _vote,
    "BrokerHeartbeat": _broker_heartbeat,
}
