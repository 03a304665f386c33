"""Finds the Kafka releases whose API versions match those of a node."""

from collections.abc import Mapping

from kafkascope.schema.catalog import apis, message
from kafkascope.schema.releases import releases

_PRODUCE = 0
# Unstable versions depend on the broker's configuration, and telemetry on its receiver, so some APIs may differ.
_AGREE = 0.9


def matching_releases(offered: Mapping[int, tuple[int, int]]) -> tuple[str, ...]:
    """The releases that match best, oldest first; none if no release matches nine tenths."""
    scores = {release.name: _matching_apis(offered, release.name) for release in releases()}
    best = max(scores.values())
    if best < _AGREE * max(len(offered), 1):
        return ()
    return tuple(release for release, score in scores.items() if score == best)


def _matching_apis(offered: Mapping[int, tuple[int, int]], release: str) -> int:
    count = 0
    for key, (first, last) in offered.items():
        api = apis().get(key)
        versions = message(f"{api}Request").versions_in(release) if api else None
        if versions:
            # 4.x brokers advertise Produce from 0 (KAFKA-18659)
            same_first = key == _PRODUCE or versions.ranges[0][0] == first
            count += same_first and versions.ranges[-1][1] == last
    return count
