"""Three accounts of one share group, made from three logs: what its members logged, what the health ledger reads in a
capture of their traffic, and what the share coordinator wrote to its topic. All are of single records."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from kafkascope.capture.reader import read
from kafkascope.client.consumer.results import Refused
from kafkascope.health.share.events import OUTCOME_OF, Delivery
from kafkascope.health.share.ledger import share_deliveries
from kafkascope.logs.reader import LogReader, RecordEvent
from kafkascope.logs.selection import Selection
from lab.program import Event
from tests.health.share_recorded import closed_connections, events_of

# Partition, offset.
Place = tuple[int, int]
# Its delivery count, and what the member made of it.
Ended = tuple[Place, int, str]
_OUTCOMES = {"ACCEPT": "accepted", "RELEASE": "released", "REJECT": "rejected"}
_TYPES = {"accept": "accepted", "release": "released", "reject": "rejected"}
# Of a member that was killed nothing more came.
_SURE = "InvalidRecordStateException"


class Account:
    """What one member did. `confirmed` are the acknowledgements that counted, as far as the member was told, `unknown`
    those that may have counted."""

    def __init__(self, client: str) -> None:
        self.client = client
        self.deliveries: Counter[tuple[Place, int]] = Counter()
        self.confirmed: Counter[Ended] = Counter()
        self.unknown: Counter[Ended] = Counter()
        # Offsets that brokers locked for it, whether or not the application got the records; None for Java's.
        self.acquired: int | None = None
        self.ranges: Counter[tuple[Place, int]] = Counter()
        self._last: dict[Place, list[Ended]] = defaultdict(list)

    def delivered(self, place: Place, delivery_count: int) -> None:
        self.deliveries[place, delivery_count] += 1

    def acknowledged(self, place: Place, delivery_count: int, outcome: str) -> None:
        ended = (place, delivery_count, outcome)
        self.confirmed[ended] += 1
        self._last[place].append(ended)

    def refused(self, part: Refused) -> None:
        for offset in range(part.first_offset, part.last_offset + 1):
            history = self._last[part.partition, offset]
            ended = next(ended for ended in reversed(history) if ended[2] == _TYPES[part.type])
            history.remove(ended)
            self.confirmed[ended] -= 1
            self.unknown[ended] += part.unknown


def java_account(client: str, events: Iterable[Event]) -> Account:
    """Of the lines that `ShareMember` logged."""
    account = Account(client)
    waiting: dict[Place, list[Ended]] = defaultdict(list)
    for event in events:
        if event["event"] == "acquired":
            for offset in range(event["firstOffset"], event["lastOffset"] + 1):
                account.ranges[(event["partition"], offset), event["deliveryCount"]] += 1
        elif event["event"] == "delivered":
            account.delivered((event["partition"], event["offset"]), event["deliveryCount"])
        elif event["event"] == "acknowledged":
            place = event["partition"], event["offset"]
            waiting[place].append((place, event["deliveryCount"], _OUTCOMES[event["type"]]))
        elif event["event"] == "committed":
            for offset in event["offsets"]:
                ended = waiting[event["partition"], offset].pop(0)
                if event["error"] is None:
                    account.confirmed[ended] += 1
                else:
                    account.unknown[ended] += event["error"] != _SURE
    for unheard in waiting.values():
        account.unknown.update(unheard)
    return account


def ledger(capture: Path, group: str) -> list[Delivery]:
    recorded = sorted(read(str(capture)), key=lambda exchange: exchange.packet)
    return list(share_deliveries(events_of(recorded, closed_connections(str(capture)), group)))


def ended_by_member(rows: Iterable[Delivery]) -> dict[str, Counter[Ended]]:
    """What the ledger has each client acknowledge, as in `Account.confirmed`."""
    by_client: dict[str, Counter[Ended]] = defaultdict(Counter)
    for row in rows:
        if row.outcome in OUTCOME_OF.values():
            assert row.client_id is not None and row.delivery_count is not None
            for offset in range(row.first_offset, row.last_offset + 1):
                by_client[row.client_id][(row.partition, offset), row.delivery_count, row.outcome] += 1
    return by_client


def acquired_by_member(rows: Iterable[Delivery]) -> dict[str, Counter[tuple[Place, int]]]:
    by_client: dict[str, Counter[tuple[Place, int]]] = defaultdict(Counter)
    for row in rows:
        assert row.client_id is not None and row.delivery_count is not None
        for offset in range(row.first_offset, row.last_offset + 1):
            by_client[row.client_id][(row.partition, offset), row.delivery_count] += 1
    return by_client


class StateBatch(NamedTuple):
    first: int
    last: int
    state: int
    delivery_count: int


class StateWrite(NamedTuple):
    """A record of `__share_group_state`."""

    type: str
    partition: int
    start_offset: int
    complete: int
    batches: tuple[StateBatch, ...]


def state_writes(disk: Path, group: str) -> list[StateWrite]:
    """From a node's data directory; the writes of one share partition are in their order."""
    writes: list[StateWrite] = []
    problems: list[Exception] = []
    for event in LogReader((str(disk),), Selection(("__share_group_state",)), on_bad=problems.append).events():
        if not isinstance(event, RecordEvent) or event.typed is None or event.batch.is_control:
            continue
        key, value = event.typed.key, event.typed.value
        if key is None or value is None or key["groupId"] != group:
            continue
        batches = [
            StateBatch(row["firstOffset"], row["lastOffset"], row["deliveryState"], row["deliveryCount"])
            for row in value["stateBatches"]
        ]
        start, complete = value["startOffset"], value.get("deliveryCompleteCount", -1)
        writes.append(StateWrite(str(event.typed.type), key["partition"], start, complete, tuple(batches)))
    assert not problems
    return writes


def last_states(writes: Iterable[StateWrite]) -> dict[Place, tuple[int, int]]:
    """The delivery state of each offset, and its delivery count, as last written."""
    states: dict[Place, tuple[int, int]] = {}
    for write in writes:
        for batch in write.batches:
            for offset in range(batch.first, batch.last + 1):
                states[write.partition, offset] = batch.state, batch.delivery_count
    return states
