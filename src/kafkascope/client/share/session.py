"""A share session at one broker: full and incremental fetches, session epochs, acknowledgements that ride on a fetch or
go alone, and the close. One request at a time, as epochs go up by one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from kafkascope.client.share.backoff import Backoff
from kafkascope.client.share.holding import Holding
from kafkascope.client.share.requests import ACKNOWLEDGE_API, FETCH_API, acknowledge_request, fetch_request
from kafkascope.client.share.values import (
    CONNECTION_LOST,
    NO_RESULT,
    AcknowledgeRange,
    AcknowledgeResult,
    Acquired,
    Delivery,
    DeliveryId,
    FetchLimits,
    LeaderChange,
    Problem,
    SharePartition,
)
from kafkascope.limits import MAX_HELD_RANGES

_NEW, _CLOSE, _FIRST = 0, -1, 1
_LAST_EPOCH = 2**31 - 1
_NOT_FOUND, _LIMIT_REACHED = 122, 133
# The session is gone, or the broker counts differently: the next fetch opens another one.
_SESSION_CODES = frozenset((_NOT_FOUND, 123, _LIMIT_REACHED))
# Top-level codes after which nothing more will work: no permission for the group, share groups switched off, and a
# request that the broker calls wrong.
_SEVERE = frozenset((30, 35, 42))
_TOPIC_AUTHORIZATION_FAILED = 29
# The partition is led elsewhere, or its topic is gone: its locks are released.
_MOVED = frozenset((3, 6, 74, 100, 103))
# Ask for its leader again, and keep what is held: the same broker may lead on.
_UNSURE = frozenset((5, 9, 56, 75, 76, 78))
# An acknowledgement that wasn't written for now (Java's retriable errors, as far as a leader returns them).
_RETRIABLE = frozenset((5, 7, 13, 14, 15, 16, 56))
# What is held longer than its lock is forgotten after as much time again: until then the broker decides.
_GRACE = 5.0
_DEFAULT_LOCK = 30.0
_INT64_MAX = 2**63 - 1
_NUMBERS = count(1)


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """A request to this broker; its response, or its loss, is reported to the session."""

    api: str
    value: dict[str, Any]
    # Partitions whose acknowledgements it carries.
    acknowledged: frozenset[SharePartition]
    epoch: int
    limits: FetchLimits | None = None


@dataclass(slots=True)
class Outcome:
    """What a response, or its loss, has changed."""

    deliveries: list[Delivery] = field(default_factory=list)
    results: list[AcknowledgeResult] = field(default_factory=list)
    leaders: list[LeaderChange] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    # Parts of the response that a broker can't have meant: they are left out, and counted.
    ignored: int = 0
    # Held offsets that ended without an acknowledgement.
    lost: int = 0
    # Whether the leaders of some partitions are in doubt.
    stale: bool = False


class ShareSession:
    """`wanted` are the partitions to fetch from this broker. Acknowledgements are queued in `holdings`."""

    def __init__(self, node: int, group: str, member_id: str) -> None:
        self.node, self.group, self.member_id = node, group, member_id
        self.wanted: frozenset[SharePartition] = frozenset()
        self.holdings: dict[SharePartition, Holding] = {}
        self.epoch = _NEW
        self.in_flight: SessionRequest | None = None
        self.opened = 0
        # Fetches in a row that acquired nothing; none after one that failed.
        self.empty_fetches = 0
        self.closed = False
        self._closing = False
        self._known: frozenset[SharePartition] = frozenset()
        self._backoff = Backoff()
        self._lock = _DEFAULT_LOCK

    @property
    def lock(self) -> float:
        """Seconds that a lock lasts, by the last response."""
        return self._lock

    @property
    def retry_at(self) -> float:
        return self._backoff.until

    @property
    def held_ranges(self) -> int:
        return sum(holding.pieces for holding in self.holdings.values())

    @property
    def queued(self) -> bool:
        return any(holding.queued for holding in self.holdings.values())

    @property
    def unsettled(self) -> bool:
        return any(holding.unsettled for holding in self.holdings.values())

    @property
    def held_offsets(self) -> int:
        return sum(holding.offsets for holding in self.holdings.values())

    @property
    def useless(self) -> bool:
        """Nothing to fetch, nothing held: it can be closed."""
        return not self.wanted and not self.holdings

    def close(self) -> None:
        """The next request is the last one. It carries what is queued and releases what is still held."""
        self._closing = True

    def request(self, now: float, fetch: FetchLimits | None, *, flush: bool) -> SessionRequest | None:
        """The next request, if one is due: a fetch only with `fetch`. Acknowledgements go alone with `flush` where no
        fetch would take them, for renewals, and for partitions that are fetched no more."""
        if self.in_flight is not None or self.closed or (now < self._backoff.until and not self._closing):
            return None
        if self._closing:
            return self._close_request()
        queued = [partition for partition, holding in self.holdings.items() if holding.queued]
        alone = (
            (flush and (fetch is None or not self.wanted))
            or any(partition not in self.wanted for partition in queued)
            or any(self.holdings[partition].queued_renewal() for partition in queued)
        )  # fmt: skip
        if queued and alone and self.epoch != _NEW:
            return self._send(ACKNOWLEDGE_API, self._take(renewals=True), None)
        if fetch is None or not self.wanted:
            return None
        # A first fetch can't carry acknowledgements: they wait for the next request.
        return self._send(FETCH_API, {} if self.epoch == _NEW else self._take(renewals=False), fetch)

    def refuse_queued(self) -> list[AcknowledgeResult]:
        """Acknowledgements that can't be sent, because the broker has no session of ours to send them in."""
        if self.epoch != _NEW or self.in_flight is not None:
            return []
        results = [result for holding in self.holdings.values() for result in holding.refuse_queued(_NOT_FOUND)]
        self._drop_empty()
        return results

    def received(self, value: Mapping[str, Any], now: float) -> Outcome:
        request, self.in_flight = self.in_flight, None
        assert request is not None
        outcome = Outcome()
        code = value["errorCode"]
        if request.epoch == _CLOSE:
            self._settle_all(request, value if code == 0 else None, code or NO_RESULT, now, outcome)
            self._end(outcome)
            return outcome
        if code != 0:
            self._refused(request, code, value.get("errorMessage"), now, outcome)
            return outcome
        if request.epoch == _NEW:
            self.opened += 1
        self.epoch = _FIRST if request.epoch == _LAST_EPOCH else request.epoch + 1
        lock = value.get("acquisitionLockTimeoutMs") or 0
        if lock > 0:
            self._lock = lock / 1000
        self._settle_all(request, value, NO_RESULT, now, outcome)
        failed = any(row["errorCode"] for _, row in _rows(value))
        if request.api == FETCH_API:
            self._take_over(value, now, outcome)
            self.empty_fetches = 0 if outcome.deliveries or failed else self.empty_fetches + 1
        self._drop_empty()
        if failed:
            self._backoff.failed(now)
        else:
            self._backoff.reset()
        return outcome

    def lost(self, now: float) -> Outcome:
        """No response: the broker may have handled the request or not. Its end of the connection releases our records,
        so all of them are lost to us."""
        request, self.in_flight = self.in_flight, None
        outcome = Outcome(stale=True)
        self.epoch = _NEW
        self.empty_fetches = 0
        self._known = frozenset()
        self._backoff.failed(now)
        if request is not None:
            self._end_holdings(CONNECTION_LOST, outcome)
        if self._closing:
            self.closed = True
        return outcome

    def expire(self, now: float) -> int:
        """Forgets what was held for longer than its lock."""
        late = now - max(self._lock, _GRACE)
        dropped = sum(holding.drop_expired(late) for holding in self.holdings.values())
        if dropped:
            self._drop_empty()
        return dropped

    def _send(
        self, api: str, acknowledged: dict[SharePartition, list[AcknowledgeRange]], limits: FetchLimits | None
    ) -> SessionRequest:
        if api == FETCH_API:
            assert limits is not None
            new = self.epoch == _NEW
            added = self.wanted if new else self.wanted - self._known
            forgotten = frozenset() if new else self._known - self.wanted
            value = fetch_request(
                self.group, self.member_id, self.epoch, limits, sorted(added), sorted(forgotten), acknowledged
            )
            self._known = self.wanted
        else:
            value = acknowledge_request(self.group, self.member_id, self.epoch, acknowledged)
        self.in_flight = SessionRequest(api, value, frozenset(acknowledged), self.epoch, limits)
        return self.in_flight

    def _close_request(self) -> SessionRequest | None:
        if self.epoch == _NEW:
            self.closed = True
            return None
        self.epoch = _CLOSE
        return self._send(ACKNOWLEDGE_API, self._take(renewals=False), None)

    def _take(self, *, renewals: bool) -> dict[SharePartition, list[AcknowledgeRange]]:
        taken = {partition: holding.take(renewals=renewals) for partition, holding in self.holdings.items()}
        return {partition: ranges for partition, ranges in taken.items() if ranges}

    def _refused(self, request: SessionRequest, code: int, message: str | None, now: float, outcome: Outcome) -> None:
        """The whole request: none of its acknowledgements counts."""
        first = not self._backoff.failing
        self.empty_fetches = 0
        self._backoff.failed(now)
        if code in _SESSION_CODES:
            self.epoch = _NEW
            self._known = frozenset()
        elif request.epoch != _NEW:
            # As Java does; If the broker did not count it, its next response shows that.
            self.epoch = _FIRST if request.epoch == _LAST_EPOCH else request.epoch + 1
        else:
            self._known = frozenset()
        for partition in request.acknowledged:
            holding = self.holdings.get(partition)
            if holding is not None:
                retried = code in _RETRIABLE
                outcome.results += holding.put_back(now, code) if retried else holding.settle(code, now, None)
        self._drop_empty()
        # A broker that is full may stay so: it's reported once.
        if (code == _LIMIT_REACHED and first) or (code not in _SESSION_CODES and code not in _RETRIABLE):
            outcome.problems.append(Problem(request.api, code, message, severe=code in _SEVERE))
        outcome.stale = code not in _SESSION_CODES

    def _settle_all(
        self, request: SessionRequest, value: Mapping[str, Any] | None, otherwise: int, now: float, outcome: Outcome
    ) -> None:
        """Each partition's result for the acknowledgements that the request carried."""
        waiting = set(request.acknowledged)
        field_name = "acknowledgeErrorCode" if request.api == FETCH_API else "errorCode"
        for partition, row in _rows(value):
            if partition not in waiting:
                outcome.ignored += request.api == ACKNOWLEDGE_API
                continue
            waiting.discard(partition)
            self._settle(request, partition, row[field_name], now, outcome)
            if request.api == ACKNOWLEDGE_API:
                self._learn_leader(partition, row, outcome)
        for partition in waiting:
            self._settle(request, partition, otherwise, now, outcome)

    def _settle(
        self, request: SessionRequest, partition: SharePartition, code: int, now: float, outcome: Outcome
    ) -> None:
        holding = self.holdings.get(partition)
        if holding is None:
            return
        if code in _RETRIABLE and request.epoch != _CLOSE:
            outcome.results += holding.put_back(now, code)
        else:
            outcome.results += holding.settle(code, now, self._lock)

    def _take_over(self, value: Mapping[str, Any], now: float, outcome: Outcome) -> None:
        seen: set[SharePartition] = set()
        room = MAX_HELD_RANGES - self.held_ranges
        for partition, row in _rows(value):
            code = row["errorCode"]
            if partition in seen or (partition not in self._known and (code or row["acquiredRecords"])):
                outcome.ignored += 1
                continue
            seen.add(partition)
            if code != 0:
                self._partition_error(partition, row, outcome)
                continue
            if len(row["acquiredRecords"]) > room:
                # Their locks will expire: they can't be used up without a record of what is held.
                outcome.ignored += 1
                continue
            acquired, odd = _acquired(row["acquiredRecords"])
            outcome.ignored += odd
            if not acquired:
                continue
            room -= len(acquired)
            holding = self.holdings.setdefault(partition, Holding(partition))
            delivery = DeliveryId(self.node, next(_NUMBERS))
            outcome.results += holding.acquire(acquired, delivery, now + self._lock)
            outcome.deliveries.append(Delivery(partition, delivery, acquired, row["records"] or b"", now, self._lock))

    def _partition_error(self, partition: SharePartition, row: Mapping[str, Any], outcome: Outcome) -> None:
        code = row["errorCode"]
        self._learn_leader(partition, row, outcome)
        if code in _MOVED or code in _UNSURE:
            return
        if code == _TOPIC_AUTHORIZATION_FAILED:
            outcome.problems.append(Problem(FETCH_API, code, row.get("errorMessage"), severe=True, partition=partition))
        elif code not in _RETRIABLE and code != -1:
            outcome.problems.append(
                Problem(FETCH_API, code, row.get("errorMessage"), severe=False, partition=partition)
            )

    def _learn_leader(self, partition: SharePartition, row: Mapping[str, Any], outcome: Outcome) -> None:
        code = row["errorCode"]
        if code in _UNSURE:
            outcome.stale = True
        if code not in _MOVED:
            return
        current = row.get("currentLeader") or {}
        change = LeaderChange(partition, current.get("leaderId", -1), current.get("leaderEpoch", -1))
        outcome.leaders.append(change)
        outcome.stale = True
        holding = self.holdings.pop(partition, None)
        if holding is not None:
            results, lost = holding.end(code)
            outcome.results += results
            outcome.lost += lost

    def _end(self, outcome: Outcome) -> None:
        """After the close: what was held is released by the broker."""
        self.closed = True
        self._end_holdings(_NOT_FOUND, outcome)

    def _end_holdings(self, code: int, outcome: Outcome) -> None:
        for holding in self.holdings.values():
            results, lost = holding.end(code)
            outcome.results += results
            outcome.lost += lost
        self.holdings.clear()

    def _drop_empty(self) -> None:
        for partition in [partition for partition, holding in self.holdings.items() if not holding.pieces]:
            del self.holdings[partition]


def _rows(value: Mapping[str, Any] | None) -> list[tuple[SharePartition, Mapping[str, Any]]]:
    return [
        (SharePartition(topic["topicId"], row["partitionIndex"]), row)
        for topic in (value or {}).get("responses", ())
        for row in topic["partitions"]
    ]


def _acquired(rows: list[Mapping[str, Any]]) -> tuple[tuple[Acquired, ...], int]:
    """The ranges in order and without overlaps, the first of two that overlap, and joined where one goes on with the
    other: a broker names each record batch. And how many were not usable."""
    ranges: list[Acquired] = []
    odd = 0
    for row in sorted(rows, key=lambda row: int(row["firstOffset"])):
        first, last = row["firstOffset"], row["lastOffset"]
        if ranges and first <= ranges[-1].last:
            odd += 1
            first = ranges[-1].last + 1
        if first < 0 or last < first or last == _INT64_MAX:
            odd += 1
            continue
        if ranges and ranges[-1].last == first - 1 and ranges[-1].delivery_count == row["deliveryCount"]:
            ranges[-1] = ranges[-1]._replace(last=last)
        else:
            ranges.append(Acquired(first, last, row["deliveryCount"]))
    return tuple(ranges), odd
