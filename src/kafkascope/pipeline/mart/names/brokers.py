"""Builds the mart of brokers on the driver: the addresses that requests went to, and those that responses name."""

from contextlib import suppress
from ipaddress import ip_address
from typing import Any

import pyarrow as pa

from kafkascope.lake.home import Lake
from kafkascope.lake.marts import MARTS
from kafkascope.lake.write.files import Files, NewFile
from kafkascope.pipeline.mart.names.facts import LakeFacts, NamedBroker, RecordedCalls

_Row = dict[str, Any]
# Brokers have one address per listener, so a cluster has at most some thousands.
_PORTION_ROWS = 20_000
# The number of ports.
_PORT_DIGITS = 5


def broker_rows(facts: LakeFacts) -> list[_Row]:
    """One row per address and cluster. Calls count for the address's own cluster; others only name it."""
    clusters = clusters_of(facts)
    named: dict[tuple[str, str | None], list[NamedBroker]] = {}
    for name in facts.named_brokers:
        address = _address(name.host, name.port)
        cluster_id = name.cluster_id or clusters.get(name.by) or clusters.get(address)
        named.setdefault((address, cluster_id), []).append(name)
    calls_by_key = {(address, clusters.get(address)): calls for address, calls in facts.calls_by_address.items()}
    keys = sorted({*named, *calls_by_key}, key=lambda key: (key[0], key[1] or ""))
    return [_row(key, named.get(key, []), calls_by_key.get(key, RecordedCalls())) for key in keys]


def write_brokers(lake: Lake, prefix: str, facts: LakeFacts) -> list[NewFile]:
    schema = MARTS["brokers"].file_schema
    plain = pa.schema([(f.name, pa.int64() if pa.types.is_timestamp(f.type) else f.type) for f in schema])
    rows = broker_rows(facts)
    files = Files(lake, "", prefix)
    for start in range(0, len(rows), _PORTION_ROWS):
        files.add(
            MARTS["brokers"], pa.Table.from_pylist(rows[start : start + _PORTION_ROWS], schema=plain).cast(schema)
        )
    return files.close()


def clusters_of(facts: LakeFacts) -> dict[str, str]:
    """The cluster of each address: by its own exchanges, otherwise the only one whose brokers name it. Produce and
    Fetch have no cluster id, which is why many brokers are known only by being named."""
    by_name: dict[str, set[str]] = {}
    for name in facts.named_brokers:
        cluster_id = name.cluster_id or facts.clusters.get(name.by)
        if cluster_id:
            by_name.setdefault(_address(name.host, name.port), set()).add(cluster_id)
    return {address: min(ids) for address, ids in by_name.items() if len(ids) == 1} | facts.clusters


def _address(host: str, port: int) -> str:
    """Formats an address as `exchanges` has it: `10.0.0.1:9092`, `[2001:db8::1]:9092`, and a name unchanged."""
    with suppress(ValueError):
        host = str(ip_address(host.strip("[]")))
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _row(key: tuple[str, str | None], named: list[NamedBroker], recorded: RecordedCalls) -> _Row:
    address, cluster_id = key
    newest = sorted(named, key=lambda name: (name.high or 0, name.node_id or 0, name.host, name.rack or ""))
    host, _, port = address.rpartition(":")
    times = [(name.low, name.high) for name in named] + [(recorded.low, recorded.high)]
    return {
        "broker_address": address,
        "cluster_id": cluster_id,
        "node_id": newest[-1].node_id if newest else None,
        "host": newest[-1].host if newest else host.strip("[]"),
        # A request log may have any text as address.
        "port": int(port) if port.isascii() and port.isdigit() and len(port) <= _PORT_DIGITS else None,
        # FindCoordinator has no cluster id.
        "rack": next((name.rack for name in reversed(newest) if name.rack is not None), None),
        "calls": recorded.calls,
        "first_at": min((low for low, _ in times if low is not None), default=None),
        "last_at": max((high for _, high in times if high is not None), default=None),
    }
