"""A broker that freezes under load and goes on as if nothing had been."""

import time

from lab.program import Event, Program
from lab.stage import Stage
from lab.wire import until

# longer than broker.session.timeout.ms (9 s), so that the controller gives its partitions other leaders
_FREEZE_SECONDS = 10.0
_FROZEN, _PARTITIONS, _REPLICAS = 4, 4, 2
_SETTLE_SECONDS = 120.0


def play(stage: Stage) -> None:
    topic = "orders"
    stage.set_up(f"{topic}:{_PARTITIONS}:{_REPLICAS}")
    watch = stage.java("Watch", "watch", {"what": "leaders", "topic": topic, "every": "500"})
    reader = stage.java(
        "Load",
        "billing",
        {"role": "consume", "topic": topic, "kafka.group.id": "billing", "kafka.group.protocol": "consumer"},
    )
    produce = {"role": "produce", "topic": topic, "partitions": str(_PARTITIONS)}
    patient = stage.java("Load", "web-shop", {**produce, "every": "100"})
    short = {"kafka.request.timeout.ms": "2000", "kafka.delivery.timeout.ms": "4000", "kafka.linger.ms": "0"}
    hasty = stage.java("Load", "sensors", {**produce, "every": "250", **short})

    def flowing(since: int) -> bool:
        return all(len(_partitions(program, since)) == _PARTITIONS for program in (patient, hasty, reader))

    until("records of every partition", lambda: flowing(0), _SETTLE_SECONDS)
    before = stage.note("flowing")
    until("load for a while", lambda: len(_of(hasty, "produced", before)) >= 32, _SETTLE_SECONDS)
    watch.wait_for("a partition to lead", lambda event: _FROZEN in event.get("leaders", {}).values())
    stage.cluster.freeze(_FROZEN)
    began = time.monotonic()
    frozen = stage.note("frozen", node=_FROZEN)
    # how long it lasts is the incident itself
    until("the end of the freeze", lambda: time.monotonic() - began >= _FREEZE_SECONDS, _SETTLE_SECONDS)
    watch.wait_for("other leaders", lambda event: event["at"] > frozen and _moved(event))
    stage.cluster.thaw(_FROZEN)
    thawed = stage.note("thawed", node=_FROZEN)
    watch.wait_for("every replica in sync", lambda event: event["at"] > thawed and _in_sync(event))
    until("records of every partition again", lambda: flowing(thawed), _SETTLE_SECONDS)
    for producer in (patient, hasty):
        producer.close()
        stage.note("closed", client=producer.who)

    def all_read() -> bool:
        written = {_place(event) for producer in (patient, hasty) for event in _of(producer, "produced", 0)}
        return written <= {_place(event) for event in _of(reader, "consumed", 0)}

    until("every record read", all_read, _SETTLE_SECONDS)
    reader.close()
    watch.close()


def _of(program: Program, name: str, since: int) -> list[Event]:
    return [event for event in program.events() if event["event"] == name and event["at"] > since]


def _place(event: Event) -> tuple[int, int]:
    return event["partition"], event["offset"]


def _partitions(program: Program, since: int) -> set[int]:
    events = _of(program, "produced", since) + _of(program, "consumed", since)
    return {event["partition"] for event in events}


def _moved(event: Event) -> bool:
    return event["event"] == "leaders" and _FROZEN not in event["leaders"].values()


def _in_sync(event: Event) -> bool:
    return event["event"] == "leaders" and all(len(nodes) == _REPLICAS for nodes in event["inSync"].values())
