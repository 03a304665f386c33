"""Decides when a query with the trigger `availableNow` has read what its topics had at its start: by what brokers
report of the group, not by how fast they deliver."""

from collections.abc import Iterable, Mapping

from kafkascope.client.share.member import ShareMember
from kafkascope.client.share.values import Acknowledge, AcknowledgeResult, SharePartition
from kafkascope.pipeline.share.group_look import GroupLook
from kafkascope.pipeline.share.ranges import OffsetSet

# What isn't done after this time without a delivery, or after a lock's if that is longer, belongs to other members:
# what a member that is gone had locked would have been redelivered.
QUIET_SECONDS = 30.0
_FINAL = frozenset((Acknowledge.GAP, Acknowledge.ACCEPT, Acknowledge.REJECT))


class Available:
    """`targets` are the ends of the partitions with records."""

    def __init__(self, targets: Mapping[SharePartition, int], look: GroupLook) -> None:
        self.targets = targets
        self._look = look
        # What the group is done with by our acknowledgements.
        self._confirmed: dict[SharePartition, OffsetSet] = {}
        self._quiet_since: float | None = None
        self._acquired = 0

    def confirm(self, results: Iterable[AcknowledgeResult]) -> None:
        for result in results:
            if result.code == 0 and result.type in _FINAL and result.partition in self.targets:
                self._confirmed.setdefault(result.partition, OffsetSet()).add(result.first, result.last)

    def is_over(self, member: ShareMember, now: float) -> bool:
        """For a member without records."""
        if all(self._is_done(partition, target) for partition, target in self.targets.items()):
            return True
        self._look.hurry()
        # Every partition of ours has a leader, which has sent nothing twice, and knows what we are done with.
        quiet = bool(member.membership.assignment) and member.exhausted > 1 and not member.unsettled
        if not quiet or member.counts.acquired != self._acquired:
            self._quiet_since, self._acquired = None, member.counts.acquired
        elif self._quiet_since is None:
            self._quiet_since = now
        lock = max((session.lock for session in member.sessions.values()), default=0.0)
        return self._quiet_since is not None and now >= self._quiet_since + max(QUIET_SECONDS, lock)

    def _is_done(self, partition: SharePartition, target: int) -> bool:
        start = self._look.starts.get(partition, -1)
        if partition in self._look.done or start >= target:
            return True
        # Brokers that don't report the lag move the start only with a later acknowledgement.
        confirmed = self._confirmed.get(partition)
        return start >= 0 and confirmed is not None and not any(confirmed.missing(start, target - 1))
