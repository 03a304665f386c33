"""The membership of a share group: joins, keeps the epoch of each heartbeat, rejoins when it is fenced, and leaves. It
takes responses and the time, and returns requests."""

from collections.abc import Mapping
from typing import Any

from kafkascope.client.share.backoff import Backoff
from kafkascope.client.share.values import Problem, SharePartition
from kafkascope.limits import MAX_KNOWN_PARTITIONS

API = "ShareGroupHeartbeat"
_JOIN, _LEAVE = 0, -1
# Java's first guess, until a response names the interval.
_FIRST_INTERVAL = 5.0
# The first heartbeat of a member without an assignment comes so early, each later one after a quarter more: partitions
# are assigned when their share state is initialized, and the coordinator waits for a heartbeat to report it.
_UNASSIGNED, _SLOWER = 0.1, 1.25
# A broker may configure any interval; none of these can flood it or lose the membership for a day.
_LEAST_INTERVAL, _MOST_INTERVAL = 0.05, 3_600.0
# Fenced, or removed because heartbeats came late: the group goes on without us until we join again with epoch 0.
_FENCED = frozenset((25, 110))
# Another coordinator, or one that reads its log.
_LATER = frozenset((5, 7, 13, 14, 15, 16, 89))
_TOPIC_AUTHORIZATION_FAILED = 29


class Membership:
    """`assignment` is what the coordinator gave last; empty while the member is fenced. `member_id` is made by the
    client and kept for its whole life (KIP-932)."""

    def __init__(self, group: str, member_id: str, topics: tuple[str, ...], rack: str | None = None) -> None:
        self.group, self.member_id, self.topics, self.rack = group, member_id, topics, rack
        self.epoch = _JOIN
        self.assignment: frozenset[SharePartition] = frozenset()
        self.joins = 0
        self.heartbeats = 0
        self.left = False
        self.failed = False
        self._interval = _FIRST_INTERVAL
        self._unassigned = _UNASSIGNED
        self._due = self._sent_at = float("-inf")
        self._backoff = Backoff()
        self._in_flight = False
        self._leaving = False
        # What the coordinator knows of us, so that later heartbeats leave it out.
        self._introduced = False

    @property
    def joined(self) -> bool:
        return self.epoch > 0

    @property
    def done(self) -> bool:
        return self.left or self.failed

    def due_at(self) -> float:
        """When the next heartbeat goes out; infinite while one is in flight."""
        if self.done or self._in_flight:
            return float("inf")
        return max(self._backoff.until, float("-inf") if self._leaving else self._due)

    def request(self, now: float) -> dict[str, Any] | None:
        """The heartbeat, if one is due. Its response or its loss must be reported before the next one."""
        if self.done or now < self.due_at():
            return None
        if self._leaving and self.epoch == _JOIN:
            # Never joined, or fenced: nobody has to be informed.
            self.left = True
            return None
        self._in_flight = True
        self._sent_at, self._due = now, now + self._interval
        self.heartbeats += 1
        self.joins += self.epoch == _JOIN
        whole = self.epoch == _JOIN or not self._introduced
        self._introduced = True
        return {
            "groupId": self.group,
            "memberId": self.member_id,
            "memberEpoch": _LEAVE if self._leaving else self.epoch,
            "rackId": self.rack if whole and not self._leaving else None,
            "subscribedTopicNames": sorted(set(self.topics)) if whole and not self._leaving else None,
        }

    def received(self, value: Mapping[str, Any], now: float) -> Problem | None:
        self._in_flight = False
        code = value["errorCode"]
        if self._leaving and value["memberEpoch"] == _LEAVE and code == 0:
            self._gone()
            return None
        if code == 0:
            self._backoff.reset()
            self._learn(value)
            return None
        self._introduced = False
        if self._leaving:
            # It's out of the group either way, unless the coordinator has moved.
            if code in _LATER:
                self._backoff.failed(now)
            else:
                self._gone()
            return None
        if code in _FENCED:
            self._rejoin(now)
            return None
        self._backoff.failed(now)
        if code in _LATER:
            return None
        if code != _TOPIC_AUTHORIZATION_FAILED:  # that permission may come later, so the member stays
            self.failed = True
            self.assignment = frozenset()
        return Problem(API, code, value.get("errorMessage"), severe=True)

    def lost(self, now: float) -> None:
        """No response. The coordinator may have seen the request: the same epoch is sent again."""
        self._in_flight = False
        self._introduced = False
        self._backoff.failed(now)
        self._due = now

    def leave(self) -> None:
        self._leaving = True
        self.assignment = frozenset()

    def _learn(self, value: Mapping[str, Any]) -> None:
        epoch = value["memberEpoch"]
        interval = value["heartbeatIntervalMs"] / 1000
        if interval > 0:
            self._interval = min(max(interval, _LEAST_INTERVAL), _MOST_INTERVAL)
        if not self._leaving and epoch > 0:
            self.epoch = epoch
            assignment = value.get("assignment")
            if assignment is not None:
                self.assignment = _assigned(assignment)
        self._due = self._sent_at + self._wait()

    def _wait(self) -> float:
        if self.assignment:
            self._unassigned = _UNASSIGNED
            return self._interval
        wait = min(self._unassigned, self._interval)
        self._unassigned = _SLOWER * wait
        return wait

    def _rejoin(self, now: float) -> None:
        """At once the first time; a coordinator that fences every join is left in peace."""
        if self.epoch == _JOIN:
            self._backoff.failed(now)
        self.epoch = _JOIN
        self.assignment = frozenset()
        self._due = now

    def _gone(self) -> None:
        self.epoch = _LEAVE
        self.left = True


def _assigned(assignment: Mapping[str, Any]) -> frozenset[SharePartition]:
    """At most as many partitions as a cluster can have; the rest of a longer list is left out."""
    partitions: set[SharePartition] = set()
    for topic in assignment["topicPartitions"]:
        for number in topic["partitions"]:
            if len(partitions) == MAX_KNOWN_PARTITIONS:
                return frozenset(partitions)
            if number >= 0:
                partitions.add(SharePartition(topic["topicId"], number))
    return frozenset(partitions)
