"""Builds the mart of brokers on the driver: the addresses that requests went to, and those that responses name."""

from contextlib import suppress
from ipaddress import ip_address
from typing import Any

import pyarrow as pa

from kafkascope.lake.home import Lake
from kafkascope.lake.marts import MARTS
from kafkascope.lake.write.files import Files, NewFile
from kafkascope.pipeline.mart.facts import Called, Facts, Named

Row = dict[str, Any]
# Brokers have one address per listener, so a cluster has some thousands at the most.
_SOME = 20_000
# Of a port.
_DIGITS = 5


def broker_rows(facts: Facts) -> list[Row]:
    """One per address and cluster. Calls count for the address's own cluster; others only name it."""
    clusters = clusters_of(facts)
    named: dict[tuple[str, str | None], list[Named]] = {}
    for name in facts.named:
        address = address_of(name.host, name.port)
        cluster_id = name.cluster_id or clusters.get(name.by) or clusters.get(address)
        named.setdefault((address, cluster_id), []).append(name)
    called = {(address, clusters.get(address)): calls for address, calls in facts.called.items()}
    keys = sorted({*named, *called}, key=lambda key: (key[0], key[1] or ""))
    return [_row(key, named.get(key, []), called.get(key, Called())) for key in keys]


def write_brokers(lake: Lake, prefix: str, facts: Facts) -> list[NewFile]:
    schema = MARTS["brokers"].file_schema
    plain = pa.schema([(f.name, pa.int64() if pa.types.is_timestamp(f.type) else f.type) for f in schema])
    rows = broker_rows(facts)
    files = Files(lake, "", prefix)
    for start in range(0, len(rows), _SOME):
        files.add(MARTS["brokers"], pa.Table.from_pylist(rows[start : start + _SOME], schema=plain).cast(schema))
    return files.close()


def clusters_of(facts: Facts) -> dict[str, str]:
    """The cluster of each address: by its own exchanges, else the only one whose brokers name it. Produce and Fetch
    have no cluster id, so many brokers are known by name alone."""
    by_name: dict[str, set[str]] = {}
    for name in facts.named:
        cluster_id = name.cluster_id or facts.clusters.get(name.by)
        if cluster_id:
            by_name.setdefault(address_of(name.host, name.port), set()).add(cluster_id)
    return {address: min(ids) for address, ids in by_name.items() if len(ids) == 1} | facts.clusters


def address_of(host: str, port: int) -> str:
    """As `exchanges` has it: `10.0.0.1:9092`, `[2001:db8::1]:9092`, and a name as it is."""
    with suppress(ValueError):
        host = str(ip_address(host.strip("[]")))
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _row(key: tuple[str, str | None], named: list[Named], called: Called) -> Row:
    address, cluster_id = key
    newest = sorted(named, key=lambda name: (name.high or 0, name.node_id or 0, name.host, name.rack or ""))
    host, _, port = address.rpartition(":")
    times = [(name.low, name.high) for name in named] + [(called.low, called.high)]
    return {
        "broker_address": address,
        "cluster_id": cluster_id,
        "node_id": newest[-1].node_id if newest else None,
        "host": newest[-1].host if newest else host.strip("[]"),
        # A request log may have any text for an address.
        "port": int(port) if port.isascii() and port.isdigit() and len(port) <= _DIGITS else None,
        # FindCoordinator has none.
        "rack": next((name.rack for name in reversed(newest) if name.rack is not None), None),
        "calls": called.calls,
        "first_at": min((low for low, _ in times if low is not None), default=None),
        "last_at": max((high for _, high in times if high is not None), default=None),
    }
