"""What a recording teaches takes no more than limits.py says, however much it tells."""

import tracemalloc
from uuid import UUID

import pytest

from kafkascope.capture.base.bounded_dict import BoundedDict
from kafkascope.capture.exchanges.name_cache import NameCache, Session
from kafkascope.limits import MAX_LEARNT_BYTES, MAX_SESSION_NAME_BYTES
from tests.capture.exchanges.test_exchanges import fetch
from tests.support.frames import Wire

# The shortest, which take most beside themselves; of wide letters, which take more than their bytes on the wire; and
# the longest that are decoded. How much may be held of each, and how many are more than that.
FORMS = {
    "short": ("t{}", 1 << 22, 15_000),
    "wide": ("\N{GRINNING FACE}" * 240 + "{}", 1 << 22, 6_000),
    "long": ("x" * 32_000 + "{}", MAX_LEARNT_BYTES, 2_500),
}


@pytest.mark.parametrize(("name", "most", "count"), FORMS.values(), ids=FORMS)
def test_names_of_topics_take_what_is_charged_for_them(name: str, most: int, count: int) -> None:
    """MAX_LEARNT_BYTES: as many as fit, and the newest of them."""
    knowledge = NameCache() if most == MAX_LEARNT_BYTES else NameCache(topics=BoundedDict(most))
    tracemalloc.start()
    try:
        knowledge._learn_topics({"topicId": UUID(int=n + 2), "name": name.format(n)} for n in range(count))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert knowledge.topics.bytes <= most
    assert most / 3 < held <= most
    assert len(knowledge.topics) < count
    assert knowledge.topic(UUID(int=count + 1).bytes) == name.format(count - 1)
    assert knowledge.topic(UUID(int=2).bytes) == "AAAAAAAAAAAAAAAAAAAAAg"


def test_sessions_take_what_is_charged_for_them() -> None:
    """MAX_LEARNT_BYTES again: many small ones, then one that alone takes more."""
    most, many = 1 << 22, 8_000
    sessions: BoundedDict[tuple[object, ...], Session] = BoundedDict(most)
    tracemalloc.start()
    try:
        for number in range(many):
            session = Session()
            session.add([f"topic-{number}"])
            session.listed = tuple(session.topics)
            sessions.put(("broker:9092", number), session, session.cost)
        small, _ = tracemalloc.get_traced_memory()
        large = Session()
        large.add(f"topic-{number}" for number in range(25_000))
        large.listed = tuple(large.topics)
        both, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0 < len(sessions) < many and sessions.get(("broker:9092", 0)) is None
    assert most / 3 < small <= most < large.cost
    assert large.cost / 3 < both - small <= large.cost
    sessions.put(("broker:9092", -1), large, large.cost)
    assert len(sessions) == 0 and sessions.bytes == 0


def test_what_is_remembered_again_is_charged_once() -> None:
    kept: BoundedDict[str, int] = BoundedDict(10)
    kept.put("a", 1, 4)
    kept.put("b", 2, 4)
    kept.put("a", 3, 6)
    assert (kept.get("a"), kept.get("b"), kept.bytes) == (3, 2, 10)
    kept.put("c", 4, 1)
    assert (kept.get("a"), kept.get("b"), kept.get("c"), kept.bytes) == (None, 2, 4, 5)
    kept.pop("b")
    kept.pop("b")
    assert (len(kept), kept.bytes) == (1, 1)


def test_fetches_share_the_topics_of_their_session() -> None:
    """MAX_SESSION_NAME_BYTES: a session of many topics that changes with every fetch would take their product."""
    many, changes = 20_000, 150
    wire = Wire()
    fetch(wire, 0, 0, 0, [f"t{number}" for number in range(many)])
    for number in range(changes):
        fetch(wire, number, 5, number + 1, [])
    for number in range(changes):
        fetch(wire, number, 5, number + 1, [f"new{number}"])
    exchange_topics = [exchange.topics for exchange in wire.exchanges()]
    assert {id(topics) for topics in exchange_topics[1 : changes + 1]} == {id(exchange_topics[1])} and len(
        exchange_topics[1]
    ) == many
    changed = exchange_topics[changes + 1 :]
    assert all(f"new{number}" in topics for number, topics in enumerate(changed))
    whole = [topics for topics in changed if len(topics) > 1]
    assert 0 < len(whole) < changes
    assert 8 * sum(map(len, whole)) <= MAX_SESSION_NAME_BYTES
