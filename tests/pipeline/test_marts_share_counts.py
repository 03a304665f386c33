"""What Spark adds up of deliveries makes the same minutes of a group as `health/` makes of them one by one."""

import json
from collections.abc import Iterator
from dataclasses import asdict, astuple, replace
from itertools import chain
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from kafkascope.health.share.events import Delivery
from kafkascope.health.share.group_health import ShareGroupEvent, ShareGroupHealth, share_group_health
from kafkascope.health.share.ledger import share_deliveries
from kafkascope.lake.home import make_lake
from kafkascope.pipeline.mart.base.events import GroupClusters
from kafkascope.pipeline.mart.increments.plan import EVERY_ROW
from kafkascope.pipeline.mart.share.counts import minute_rows, minutes_writer
from kafkascope.pipeline.mart.share.events import ShareEvents
from kafkascope.pipeline.mart.share.walk import DELIVERIES, Group
from tests.health.share_partitions import split
from tests.health.share_simulator import Simulation
from tests.pipeline.mart_rows import plain_rows, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GROUPS = 40
# Simulations last some seconds: so much slower they last some minutes.
SLOWER = 20
BROKER = "b1"
END = 40_000_000_000


def deliveries_of(seed: int) -> list[Delivery]:
    simulation = Simulation(seed, writes=seed % 2 == 0).run()
    events = split(simulation.events, 9, len(simulation.records))
    return [_slower(row, f"g{seed}") for row in share_deliveries(events)]


def _slower(row: Delivery, group_id: str) -> Delivery:
    times = {
        name: at and at * SLOWER for name, at in (("acquired_at", row.acquired_at), ("outcome_at", row.outcome_at))
    }
    topic = None if row.partition == 1 else row.topic
    return replace(row, group_id=group_id, topic=topic, **times)  # type: ignore[arg-type]


def events_of(seed: int, deliveries: list[Delivery]) -> Iterator[ShareGroupEvent]:
    """In time order."""
    random = Random(seed)
    times = sorted(row.acquired_at for row in deliveries if row.acquired_at is not None)
    for at in times[:: random.choice([3, 7])]:
        base = ShareGroupEvent("", at, random.randint(0, 9), f"g{seed}", f"{at}")
        yield base._replace(kind="heartbeat", member_id="m", member_epoch=3, group_epoch=4, assigned=2)
        lag, start = random.choice([None, -1, 0, 5]), random.randint(0, 20)
        yield base._replace(
            kind="offsets", order=10, topic="orders", topic_id="T", partition=1, lag=lag, start_offset=start
        )
    if times:
        yield ShareGroupEvent("described", times[-1] + 1, 0, f"g{seed}", "e", state="Stable", members=2, group_epoch=9)


def test_minutes_are_those_of_the_deliveries_one_by_one(spark: "SparkSession", tmp_path: Path) -> None:
    deliveries = {seed: deliveries_of(seed) for seed in range(GROUPS)}
    events = {seed: list(events_of(seed, rows)) for seed, rows in deliveries.items()}
    expected = [
        minute
        for seed, rows in deliveries.items()
        for minute in share_group_health(rows, [*events[seed], ShareGroupEvent("seen", END, group_id=f"g{seed}")])
    ]
    plain = pa.schema([(f.name, pa.int64() if pa.types.is_timestamp(f.type) else f.type) for f in DELIVERIES.schema])
    table = pa.Table.from_pylist([asdict(row) for row in chain(*deliveries.values())], plain).cast(DELIVERIES.schema)
    described = [{**event._asdict(), "broker": BROKER} for event in chain(*events.values())]
    columns = {name: [row[name] for row in described] for name in described[0]}
    frame = spark.createDataFrame(table.drop(["broker_address"])).selectExpr(
        "*", "CAST(NULL AS STRING) AS cluster", "0 AS segment"
    )
    described_events = ShareEvents(
        None, spark.createDataFrame(pa.table(columns)), None, GroupClusters({}, frozenset()), None
    )
    rows = minute_rows(spark, frame, described_events, EVERY_ROW)
    assert rows is not None
    brokers: dict[Group, set[str]] = {(f"g{seed}", None): {BROKER} for seed in range(GROUPS)}
    lake = make_lake(tmp_path)
    write = minutes_writer(lake, EVERY_ROW, brokers, {BROKER: [(0, 10), (20, END)]}, {})
    (listed,) = write(iter(rows.toArrow().to_batches()))
    files = [json.loads(text)["path"] for text in listed.column(0).to_pylist()]
    made = rows_of(
        ShareGroupHealth,
        plain_rows(pa.concat_tables(pq.read_table(tmp_path / "share_group_health" / path) for path in files)),
    )
    assert sorted(map(_text, made)) == sorted(map(_text, expected))
    assert sum(bool(row.standing_still) for row in made) > 10 and sum(row.archived for row in made) > 10
    assert sum(row.acknowledge_p95_us != row.acknowledge_p50_us for row in made) > 10


def _text(row: ShareGroupHealth) -> str:
    # An empty map comes back as an empty list.
    return repr(astuple(replace(row, redeliveries=dict(row.redeliveries))))
