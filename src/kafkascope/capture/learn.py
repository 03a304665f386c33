"""What a recording teaches: answers in, names of topic ids, addresses of nodes and the topics of fetch sessions out. It
knows what came before an exchange, so nothing here changes an earlier one."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import numpy as np

from kafkascope.capture.bodies import decode_request, decode_response
from kafkascope.capture.exchanges import ExchangeBatch
from kafkascope.capture.headers import API_KEY, CONNECTION, VERSION
from kafkascope.capture.pairing import ANSWERED
from kafkascope.capture.scan_program import (
    GROUP,
    MEMBER,
    NEW_SESSION,
    SESSION,
    SESSION_EPOCH,
    TOPIC,
    TOPIC_ID,
    TOPICS,
)
from kafkascope.codec.json_form import uuid_text
from kafkascope.errors import DecodeError

FETCH, SHARE_FETCH, SHARE_ACKNOWLEDGE = 1, 78, 79
METADATA, FIND_COORDINATOR, CREATE_TOPICS, DESCRIBE_CLUSTER, DESCRIBE_TOPIC_PARTITIONS = 3, 10, 19, 60, 75
# Correlation id, tags and throttle time come first: what is behind them is the same in answer after answer.
CHANGING_BYTES = 9
MOST_ANSWERS = 10_000
OPENS, CLOSES = 0, -1
# The one topic whose id is the same everywhere (Uuid.METADATA_TOPIC_ID).
METADATA_TOPIC = {UUID(int=1).bytes: "__cluster_metadata"}


@dataclass(frozen=True, slots=True)
class Names:
    """Of one exchange, each once, in the order of the wire. Topics that only a fetch session names are there too; an id
    whose name the recording has not told stands in Kafka's own form."""

    groups: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()


NO_NAMES = Names()


@dataclass(slots=True)
class Knowledge:
    topics: dict[bytes, str] = field(default_factory=METADATA_TOPIC.copy)
    nodes: dict[int, str] = field(default_factory=dict)
    sessions: dict[tuple[object, ...], dict[str, None]] = field(default_factory=dict)
    _answers: set[int] = field(default_factory=set)

    def learn(self, batch: ExchangeBatch) -> None:
        """Topic names and node addresses."""
        keys = batch.rows[batch.request, API_KEY]
        telling = (batch.status == ANSWERED) & np.isin(keys, list(_TEACHERS))
        for index in np.flatnonzero(telling).tolist():
            frame = batch.response_frame(index)
            assert frame is not None
            seen = hash(frame[CHANGING_BYTES:])
            if seen in self._answers:
                continue
            if len(self._answers) < MOST_ANSWERS:
                self._answers.add(seen)
            key = int(keys[index])
            try:
                read = decode_response(frame, key, int(batch.rows[batch.request[index], VERSION]))
            except DecodeError:
                continue
            if read is not None:
                _TEACHERS[key](self, read.value)

    def topic(self, topic_id: bytes) -> str:
        return self.topics.get(topic_id) or uuid_text(UUID(bytes=topic_id))

    def names(self, batch: ExchangeBatch) -> list[Names]:
        """One an exchange; the batch must have been read with names."""
        found: list[dict[int, dict[str, None]]] = [{} for _ in range(len(batch))]
        texts: dict[bytes, str] = {}
        for index, kind, at, size in batch.facts.names.tolist():
            raw = batch.content.bytes(at, size)
            if kind == TOPIC_ID:
                self._add_topic(found[index], raw)
                continue
            text = texts.get(raw)
            if text is None:
                text = texts[raw] = raw.decode(errors="replace")
            found[index].setdefault(kind, {})[text] = None
        for index, kind, name in batch.facts.more_names:
            if isinstance(name, bytes):
                self._add_topic(found[index], name)
            else:
                found[index].setdefault(kind, {})[name] = None
        self._follow_sessions(batch, found)
        return [_names(one) if one else NO_NAMES for one in found]

    def _add_topic(self, found: dict[int, dict[str, None]], topic_id: bytes) -> None:
        if any(topic_id):
            found.setdefault(TOPIC, {})[self.topic(topic_id)] = None

    def _follow_sessions(self, batch: ExchangeBatch, found: list[dict[int, dict[str, None]]]) -> None:
        """KIP-227: a fetch within a session names what changed; its partitions are those of the session."""
        keys = batch.rows[batch.request, API_KEY]
        fetches = (batch.request >= 0) & np.isin(keys, (FETCH, SHARE_FETCH, SHARE_ACKNOWLEDGE))
        fetches &= batch.facts.seen[:, SESSION_EPOCH] > 0
        for index in np.flatnonzero(fetches).tolist():
            values = batch.facts.values[index].tolist()
            connection = int(batch.rows[batch.request[index], CONNECTION])
            where: object = batch.ends[connection].broker_address
            # A share session belongs to its connection, a fetch session to the broker that numbered it.
            key = (where, values[SESSION]) if keys[index] == FETCH else (connection, "share")
            if values[SESSION_EPOCH] == CLOSES:
                self.sessions.pop(key, None)
                continue
            if values[SESSION_EPOCH] == OPENS:
                opened = (where, values[NEW_SESSION]) if keys[index] == FETCH else key
                if keys[index] != FETCH or values[NEW_SESSION] > 0:
                    self.sessions[opened] = dict(found[index].get(TOPIC, {}))
                continue
            held = self.sessions.get(key)
            if held is None:
                continue
            if values[TOPICS] and keys[index] != SHARE_ACKNOWLEDGE:
                self._change_session(held, batch.request_frame(index))
            found[index].setdefault(TOPIC, {}).update(held)

    def _change_session(self, held: dict[str, None], frame: bytes | None) -> None:
        try:
            read = decode_request(frame or b"")
        except DecodeError:
            return
        if read is None:
            return
        named = {self._topic_of(topic) for topic in read.value["topics"]}
        held.update(dict.fromkeys(named))
        for gone in read.value.get("forgottenTopicsData") or ():
            # Other partitions of the topic may stay: only one that is not asked for again is gone.
            if (name := self._topic_of(gone)) not in named:
                held.pop(name, None)

    def _topic_of(self, value: dict[str, Any]) -> str:
        return value["topic"] if "topic" in value else self.topic(value["topicId"].bytes)

    def _learn_topics(self, topics: Any) -> None:
        for topic in topics or ():
            topic_id = topic.get("topicId")
            if topic_id and topic_id.int and topic.get("name"):
                self.topics[topic_id.bytes] = topic["name"]

    def _learn_nodes(self, nodes: Any, name: str) -> None:
        for node in nodes or ():
            if node.get(name, -1) >= 0 and node.get("host"):
                host = f"[{node['host']}]" if ":" in node["host"] else node["host"]
                self.nodes[node[name]] = f"{host}:{node['port']}"

    def _metadata(self, value: dict[str, Any]) -> None:
        self._learn_topics(value.get("topics"))
        self._learn_nodes(value.get("brokers"), "nodeId")

    def _coordinators(self, value: dict[str, Any]) -> None:
        self._learn_nodes(value.get("coordinators") or [value], "nodeId")

    def _cluster(self, value: dict[str, Any]) -> None:
        self._learn_nodes(value.get("brokers"), "brokerId")


_TEACHERS: dict[int, Callable[[Knowledge, dict[str, Any]], None]] = {
    METADATA: Knowledge._metadata,
    FIND_COORDINATOR: Knowledge._coordinators,
    CREATE_TOPICS: Knowledge._metadata,
    DESCRIBE_CLUSTER: Knowledge._cluster,
    DESCRIBE_TOPIC_PARTITIONS: Knowledge._metadata,
}


def _names(found: dict[int, dict[str, None]]) -> Names:
    return Names(*(tuple(found.get(kind, ())) for kind in (GROUP, MEMBER, TOPIC)))
