"""The order of tests for several workers. Each worker starts with tests that share a cluster, a Spark session or other
programs, so that only one of them starts these; light tests come last, because idle workers take over from the end."""

from collections.abc import Callable, Iterable

import pytest

CLUSTERS = {"cluster", "cluster_39", "quorum_cluster", "secure_cluster", "secured_cluster", "secured_cluster_39"}


def _room(module: list[pytest.Item], is_heavy: Callable[[pytest.Item], bool]) -> int:
    """0 for a module that asks for a cluster, 1 for Spark, 2 for other programs, 3 for none."""
    names = {name for item in module for name in getattr(item, "fixturenames", ())}
    if names & CLUSTERS:
        return 0
    if "spark" in names:
        return 1
    return 2 if any(map(is_heavy, module)) else 3


def for_workers(
    items: Iterable[pytest.Item], workers: int, is_heavy: Callable[[pytest.Item], bool]
) -> list[pytest.Item]:
    """The tests of a module stay together. xdist gives each worker an equal share of the list at first."""
    modules: dict[str, list[pytest.Item]] = {}
    for item in items:
        modules.setdefault(item.nodeid.partition("::")[0], []).append(item)
    rooms: list[list[pytest.Item]] = [[], [], [], []]
    for module in modules.values():
        rooms[_room(module, is_heavy)] += module
    *heavy, light = rooms
    shares: list[list[pytest.Item]] = [[] for _ in range(workers)]
    for number, room in enumerate(heavy):
        shares[number % workers] += room
    wanted = sum(map(len, rooms)) // workers
    for share in shares[:-1]:
        missing = max(0, wanted - len(share))
        share += light[:missing]
        del light[:missing]
    shares[-1] += light
    return [item for share in shares for item in share]
