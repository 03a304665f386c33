"""Finds the Kafka releases whose API versions agree with those that a node offers."""

from collections.abc import Mapping

from kafkascope.schema.catalog import apis, message
from kafkascope.schema.releases import releases

_PRODUCE = 0
# Unstable versions are offered or not, as a broker is set up, and telemetry where it has a receiver: some APIs differ.
_AGREE = 0.9


def matching_releases(offered: Mapping[int, tuple[int, int]]) -> tuple[str, ...]:
    """Those that agree with most of what is offered, oldest first; none where no release agrees with nine tenths."""
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
            # 4.x brokers say Produce begins at 0 (KAFKA-18659)
            same_first = key == _PRODUCE or versions.ranges[0][0] == first
            count += same_first and versions.ranges[-1][1] == last
    return count
