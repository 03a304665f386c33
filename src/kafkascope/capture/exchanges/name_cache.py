"""Learns the names of topic ids and the topics of fetch sessions from responses. An exchange only uses what came before
it, so new knowledge never changes an earlier one."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from sys import getsizeof
from typing import Any
from uuid import UUID

import numpy as np

from kafkascope.capture.base.bounded_dict import BoundedDict
from kafkascope.capture.exchanges.bodies import decode_request, decode_response
from kafkascope.capture.exchanges.exchanges import ExchangeBatch
from kafkascope.capture.exchanges.pairing import PairStatus
from kafkascope.capture.frames.headers import Frame
from kafkascope.capture.frames.scan_program import Fact, NameKind
from kafkascope.codec.json_form import uuid_text
from kafkascope.errors import DecodeError
from kafkascope.limits import MAX_CAREFUL_FRAME_BYTES, MAX_LEARNT_BYTES, MAX_SESSION_NAME_BYTES

FETCH, SHARE_FETCH, SHARE_ACKNOWLEDGE = 1, 78, 79
METADATA, CREATE_TOPICS, DESCRIBE_TOPIC_PARTITIONS = 3, 19, 75
_TOPIC_RESPONSES = (METADATA, CREATE_TOPICS, DESCRIBE_TOPIC_PARTITIONS)
# Correlation id, tags and throttle time come first: the bytes after them are the same in response after response.
CHANGING_BYTES = 9
MOST_ANSWERS = 10_000
OPENS, CLOSES = 0, -1
# The one topic whose id is the same everywhere (Uuid.METADATA_TOPIC_ID).
WELL_KNOWN_TOPICS = {UUID(int=1).bytes: "__cluster_metadata"}
# Memory of a topic name besides its text: its id, its entry, and the room a dict keeps free to grow; in a session, also
# its place in the tuple that exchanges share. And the memory of a session. All measured.
ENTRY_COST, TOPIC_COST, SESSION_COST = 320, 110, 640
# Memory of a name in a tuple.
_PLACE_BYTES = 8


@dataclass(frozen=True, slots=True)
class Names:
    """The names in one exchange, each once, in the order of the wire. A fetch within a session has the topics of the
    session, in its order; a topic id without a known name is in Kafka's text form."""

    groups: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()


NO_NAMES = Names()


@dataclass(slots=True)
class Session:
    """`cost` is the memory of its topics. `listed` is the tuple of them that exchanges share, None after a change."""

    topics: dict[str, None] = field(default_factory=dict)
    cost: int = SESSION_COST
    listed: tuple[str, ...] | None = None

    def add(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.topics:
                self.topics[name] = None
                self.cost += TOPIC_COST + getsizeof(name)
                self.listed = None

    def forget(self, name: str) -> None:
        if name in self.topics:
            del self.topics[name]
            self.cost -= TOPIC_COST + getsizeof(name)
            self.listed = None


def _remembered() -> BoundedDict[Any, Any]:
    return BoundedDict(MAX_LEARNT_BYTES)


@dataclass(slots=True)
class NameCache:
    """Holds at most MAX_LEARNT_BYTES of each kind. After an eviction it's as if the recording began there: a topic id
    stays an id, and a fetch has only the topics that it names itself."""

    topics: BoundedDict[bytes, str] = field(default_factory=_remembered)
    sessions: BoundedDict[tuple[object, ...], Session] = field(default_factory=_remembered)
    _answers: set[int] = field(default_factory=set)

    def learn(self, batch: ExchangeBatch) -> None:
        """Learns topic names from responses."""
        keys = batch.rows[batch.request, Frame.API_KEY]
        telling = (batch.status == PairStatus.ANSWERED) & np.isin(keys, _TOPIC_RESPONSES)
        for index in np.flatnonzero(telling).tolist():
            frame = batch.response_frame(index, MAX_CAREFUL_FRAME_BYTES)
            if frame is None:
                continue
            seen = hash(frame[CHANGING_BYTES:])
            if seen in self._answers:
                continue
            if len(self._answers) < MOST_ANSWERS:
                self._answers.add(seen)
            key = int(keys[index])
            try:
                read = decode_response(frame, key, int(batch.rows[batch.request[index], Frame.VERSION]))
            except DecodeError:
                continue
            if read is not None:
                self._learn_topics(read.value.get("topics"))

    def topic(self, topic_id: bytes) -> str:
        return self.topics.get(topic_id) or WELL_KNOWN_TOPICS.get(topic_id) or uuid_text(UUID(bytes=topic_id))

    def names(self, batch: ExchangeBatch) -> list[Names]:
        """One per exchange; the batch must have been read with names."""
        names_by_kind: list[dict[int, dict[str, None]]] = [{} for _ in range(len(batch))]
        texts: dict[bytes, str] = {}
        for index, kind, at, size in batch.facts.names.tolist():
            raw = batch.content.bytes(at, size)
            if kind == NameKind.TOPIC_ID:
                self._add_topic(names_by_kind[index], raw)
                continue
            text = texts.get(raw)
            if text is None:
                text = texts[raw] = raw.decode(errors="replace")
            names_by_kind[index].setdefault(kind, {})[text] = None
        for index, kind, name in batch.facts.more_names:
            if isinstance(name, bytes):
                self._add_topic(names_by_kind[index], name)
            else:
                names_by_kind[index].setdefault(kind, {})[name] = None
        held = self._follow_sessions(batch, names_by_kind)
        named = [_names(by_kind) if by_kind else NO_NAMES for by_kind in names_by_kind]
        for index, topics in held.items():
            named[index] = replace(named[index], topics=topics)
        return named

    def _add_topic(self, by_kind: dict[int, dict[str, None]], topic_id: bytes) -> None:
        if any(topic_id):
            by_kind.setdefault(NameKind.TOPIC, {})[self.topic(topic_id)] = None

    def _follow_sessions(
        self, batch: ExchangeBatch, names_by_kind: list[dict[int, dict[str, None]]]
    ) -> dict[int, tuple[str, ...]]:
        """KIP-227: a fetch within a session only names what changed; its partitions are those of the session. Maps an
        exchange to the topics of its session: one tuple for all exchanges until the session changes."""
        keys = batch.rows[batch.request, Frame.API_KEY]
        fetches = (batch.request >= 0) & np.isin(keys, (FETCH, SHARE_FETCH, SHARE_ACKNOWLEDGE))
        fetches &= batch.facts.seen[:, Fact.SESSION_EPOCH] > 0
        session_topics: dict[int, tuple[str, ...]] = {}
        room = MAX_SESSION_NAME_BYTES
        for index in np.flatnonzero(fetches).tolist():
            values = batch.facts.values[index].tolist()
            connection = int(batch.rows[batch.request[index], Frame.CONNECTION])
            where: object = batch.ends[connection].broker_address
            # A share session belongs to its connection, a fetch session to the broker that numbered it.
            key = (where, values[Fact.SESSION]) if keys[index] == FETCH else (connection, "share")
            own = names_by_kind[index].get(NameKind.TOPIC, {})
            if values[Fact.SESSION_EPOCH] == CLOSES:
                self.sessions.pop(key)
                continue
            if values[Fact.SESSION_EPOCH] == OPENS:
                opened = (where, values[Fact.NEW_SESSION]) if keys[index] == FETCH else key
                if keys[index] != FETCH or values[Fact.NEW_SESSION] > 0:
                    session = Session()
                    session.add(own)
                    self.sessions.put(opened, session, session.cost)
                continue
            held = self.sessions.get(key)
            if held is None:
                continue
            if values[Fact.TOPICS] and keys[index] != SHARE_ACKNOWLEDGE:
                self._change_session(held, batch.request_frame(index, MAX_CAREFUL_FRAME_BYTES))
                self.sessions.put(key, held, held.cost)
            mixed = not own.keys() <= held.topics.keys()
            if mixed or held.listed is None:
                room -= _PLACE_BYTES * (len(own) + len(held.topics))
                if room < 0:
                    continue
            if held.listed is None:
                held.listed = tuple(held.topics)
            session_topics[index] = tuple(own | held.topics) if mixed else held.listed
        return session_topics

    def _change_session(self, held: Session, frame: bytes | None) -> None:
        try:
            read = decode_request(frame or b"")
        except DecodeError:
            return
        if read is None:
            return
        named = {self._topic_of(topic): None for topic in read.value["topics"]}
        held.add(named)
        for gone in read.value.get("forgottenTopicsData") or ():
            # Other partitions of the topic may stay: the topic is forgotten only if the request doesn't name it.
            if (name := self._topic_of(gone)) not in named:
                held.forget(name)

    def _topic_of(self, value: dict[str, Any]) -> str:
        return value["topic"] if "topic" in value else self.topic(value["topicId"].bytes)

    def _learn_topics(self, topics: Any) -> None:
        for topic in topics or ():
            topic_id = topic.get("topicId")
            if topic_id and topic_id.int and topic.get("name"):
                self.topics.put(topic_id.bytes, topic["name"], ENTRY_COST + getsizeof(topic["name"]))


def _names(by_kind: dict[int, dict[str, None]]) -> Names:
    return Names(*(tuple(by_kind.get(kind, ())) for kind in (NameKind.GROUP, NameKind.MEMBER, NameKind.TOPIC)))
