"""Turns the flags of `check` into what it looks at, for how long, and the limits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafkascope.cli.live.check_targets import ALL
from kafkascope.cli.thresholds import parse_thresholds
from kafkascope.cli.units import parse_duration
from kafkascope.client.check.run import GROUP, QUORUM, SHARE, STREAMS
from kafkascope.client.check.verdicts import CheckLimits
from kafkascope.errors import UsageError


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """What to look at, for how many seconds, and the limits."""

    what: str
    groups: tuple[str, ...]
    limits: CheckLimits
    seconds: float

    @property
    def kinds(self) -> tuple[str, ...]:
        return (QUORUM, SHARE, STREAMS, GROUP) if self.what == ALL else (self.what,)

    @staticmethod
    def of(what: str, groups: tuple[str, ...], options: Mapping[str, Any]) -> "CheckOptions":
        """UsageError for flags that don't apply to what is checked."""
        if groups and what in (QUORUM, ALL):
            raise UsageError(f"check {what} takes no group; use `check share-group HOST {groups[0]}`")
        if options["max_lag_ms"] is not None and what not in (QUORUM, ALL):
            raise UsageError("--max-lag-ms is for the quorum; the lag of a group is in records: use --max-lag")
        if options["min_members"] is not None and what == QUORUM:
            raise UsageError("--min-members is for groups; a quorum has voters")
        if options["as_json"] and (options["form"] != "text" or options["listen"]):
            raise UsageError("--json doesn't go with --format openmetrics or --listen; leave one out")
        lasting = options["lasting"]
        microseconds = 0 if lasting is None else parse_duration(lasting, "--for")
        limits = CheckLimits(
            options["max_lag"], options["max_lag_ms"], options["min_members"],
            parse_thresholds(options["thresholds"]), microseconds // 1000, options["fail_on"],
        )  # fmt: skip
        return CheckOptions(what, groups, limits, microseconds / 1_000_000)
