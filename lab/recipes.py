"""Incidents: what happens on the stage, in order, while tcpdump and the request log record it.
No step waits for a time, each waits for what the step before must have caused."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lab.jars import PYTHON_CLIENTS
from lab.program import Program
from lab.settings import USERS
from lab.stage import Stage
from lab.wire import until

_SETTLE_SECONDS = 120.0
_CONFLUENT, _KAFKA_PYTHON, _OLD_KAFKA_PYTHON = PYTHON_CLIENTS


@dataclass(frozen=True, slots=True)
class Recipe:
    """`cluster` are the arguments of `Cluster`. With `whole` the recording begins before the first node does."""

    tells: str
    play: Callable[[Stage], None]
    cluster: Mapping[str, Any] = field(default_factory=dict)
    whole: bool = False
    nanoseconds: bool = False


def share(stage: Stage) -> None:
    group = "processors"
    stage.set_up("orders:1:1,payments:2:1", f"{group}:share.auto.offset.reset=earliest")

    def member(who: str, rules: str, topics: str = "orders", **more: str) -> Program:
        # the same for everyone: one record is poison, one is not wanted
        rules = f"orders-0-3=release;orders-0-5=reject;{rules}"
        few = {"kafka.max.poll.records": "4", "kafka.share.acquire.mode": "record_limit"}
        return stage.java("ShareMember", who, {"topic": topics, "kafka.group.id": group, "rules": rules, **few, **more})

    _produce(stage, "producer-1", "orders", 30)
    watch = stage.java("Watch", "watch", {"what": "share", "group": group, "every": "1000"})
    # Locks last 3 s. The first record is held far longer, by renewals, and with it the start offset: an acknowledgement
    # that is late but before the start offset would be taken without an error.
    renewer = member("renewer", "orders-0-0=renew:14:600", commit="sync", **{"kafka.max.poll.records": "1"})
    renewer.wait_for("a renewal", lambda event: event.get("type") == "RENEW")
    stage.note("renewing", member="renewer")
    hung = member("hung", "n3=hang:4500")
    hung.wait_for_event("hanging")
    stage.note("hung", member="hung")
    steady = member("steady", "", "orders,payments", commit="sync")
    steady.wait_for_event("delivered")
    doomed = member("doomed", "n2=halt")
    _produce(stage, "producer-payments", "payments", 12)
    rounds = 0
    while doomed.process.status is None:
        rounds += 1
        _produce(stage, f"producer-more-{rounds}", "orders", 16)
    doomed.finish(1)
    stage.note("halted", member="doomed")
    leaver = member("leaver", "n2=leave")
    while leaver.process.status is None:
        rounds += 1
        _produce(stage, f"producer-more-{rounds}", "orders", 16)
    leaver.finish()
    stage.note("left", member="leaver")
    hung.wait_for("a late acknowledgement refused", lambda event: bool(event.get("error")))
    renewer.wait_for("its record accepted", lambda event: event.get("offset") == 0 and event.get("type") == "ACCEPT")
    waiting = stage.note("waiting", record="all")
    watch.wait_for("every record settled", lambda event: event["at"] > waiting and _settled(event))
    for program in (hung, renewer, steady):
        program.close()
        stage.note("left", member=program.who)
    watch.wait_for("an empty group", lambda event: event.get("state") == "Empty")
    watch.close()


def _produce(stage: Stage, who: str, topic: str, count: int) -> None:
    options = {"role": "produce", "topic": topic, "count": str(count), "kafka.batch.size": "400"}
    stage.java("Client", who, options).finish()


def _settled(event: dict[str, Any]) -> bool:
    """No partition has lag, the second figure of each; the start offset, the first, may trail for long."""
    lag = event.get("startOffsetAndLag", {})
    return len(lag) == 3 and all(figures is not None and figures[1] == 0 for figures in lag.values())


def streams(stage: Stage) -> None:
    group, topic, partitions = "counters", "words", 3
    tasks = {f"{part}_{partition}" for part in (0, 1) for partition in range(partitions)}
    standbys = "streams.num.standby.replicas=1"
    stage.set_up(f"{topic}:{partitions}:1,counts:1:1", f"{group}:{standbys}")
    _produce(stage, "producer-1", topic, 60)

    def member(who: str) -> Program:
        options = {"topic": topic, "output": "counts", "kafka.application.id": group}
        stage.note("joining", member=who)
        return stage.java("StreamsMember", who, {**options, "kafka.state.dir": str(stage.folder / f"state-{who}")})

    def settle(*members: Program) -> None:
        def held() -> bool:
            last = [_holds(program) for program in members]
            active = [task for program in last for task in program["active"]]
            standby = [task for program in last for task in program["standby"]]
            backed_up = len(members) == 1 or sorted(standby) == sorted(tasks)
            return sorted(active) == sorted(tasks) and backed_up and all(program["active"] for program in last)

        until(f"tasks spread over {', '.join(program.who for program in members)}", held, _SETTLE_SECONDS)
        stage.note("settled", members=[program.who for program in members])

    first = member("first")
    settle(first)
    watch = stage.java("Watch", "watch", {"what": "streams", "group": group, "every": "1000"})
    second = member("second")
    settle(first, second)
    third = member("third")
    settle(first, second, third)
    _produce(stage, "producer-2", topic, 60)
    second.process.tell("halt")
    second.finish(1)
    stage.note("halted", member="second")
    settle(first, third)
    first.close()
    stage.note("left", member="first")
    settle(third)
    third.close()
    watch.close()


def _holds(program: Program) -> dict[str, Any]:
    held = [event for event in program.events() if event["event"] == "holds"]
    return held[-1] if held else {"active": [], "standby": []}


def quorum(stage: Stage) -> None:
    cluster = stage.cluster
    leader = cluster.leader()
    stage.note("leads", node=leader)
    watch = stage.java("Watch", "watch", {"what": "quorum", "every": "400", "churn": "3", "tool": "2"})
    watch.wait_for_event("created")
    frozen = next(number for number in (1, 2, 3) if number != leader)
    observer = 4
    cluster.freeze(frozen)
    stage.note("frozen", node=frozen)
    watch.wait_for("the frozen follower behind", lambda event: _lag(event, frozen) >= 12)
    cluster.thaw(frozen)
    thawed = stage.note("thawed", node=frozen)
    watch.wait_for("the follower caught up", lambda event: event["at"] > thawed and 0 <= _lag(event, frozen) <= 5)
    cluster.kill(leader)
    killed = stage.note("killed", node=leader)

    def elected(event: dict[str, Any]) -> bool:
        if event["event"] != "quorum" or event["at"] <= killed:
            return False
        ends = {replica["id"]: int(replica["logEndOffset"]) for replica in event["observers"]}
        return bool(event["leader"] != leader and ends.get(observer, -1) >= 0)

    now = watch.wait_for("another leader that the observer follows", elected)
    stage.note("leads", node=now["leader"])
    cluster.start(leader)
    stage.note("restarted", node=leader)
    back = stage.note("waiting", node=leader)
    watch.wait_for("the killed node back", lambda event: event["at"] > back and 0 <= _lag(event, leader) <= 5)
    watch.close()


def _lag(event: dict[str, Any], node: int) -> int:
    """Records behind the leader, −1 where the answer does not tell."""
    ends = {replica["id"]: int(replica["logEndOffset"]) for replica in event.get("voters", ())}
    leads = ends.get(event.get("leader", -1), -1)
    return leads - ends[node] if ends.get(node, -1) >= 0 and leads >= 0 else -1


def _clients(stage: Stage) -> None:
    # kafka-python has no codec but gzip of its own, so it gets a topic without the others
    stage.set_up("events:2:1,ledger:1:1,letters:1:1,sensors:1:1")
    every = "produce,consume,admin"
    running: list[Program] = []

    def java(who: str, release: str, role: str = every, topic: str = "events", **more: str) -> None:
        options = {"role": role, "topic": topic, "kafka.group.id": f"readers-{who}"}
        running.append(stage.java("Client", who, {**options, **{_dotted(name): more[name] for name in more}}, release))

    def finish() -> None:
        # two cores: a few JVMs at a time
        for program in running:
            program.finish()
            stage.note("done", client=program.who)
        running.clear()

    java("java-2.8", "2.8.2", kafka_compression_type="gzip")
    java("java-3.9", "3.9.1", kafka_compression_type="snappy")
    finish()
    java("java-4.3", "4.3.1", kafka_compression_type="zstd", kafka_group_protocol="consumer")
    java("java-4.3-acks-0", "4.3.1", "produce", "sensors", kafka_acks="0", kafka_compression_type="lz4")
    finish()
    java("java-4.3-transactions", "4.3.1", "transact,consume", "ledger", kafka_transactional_id="ledger-writer",
         kafka_isolation_level="read_committed")  # fmt: skip
    java("java-2.8-transactions", "2.8.2", "transact", "ledger", kafka_transactional_id="old-ledger-writer")
    finish()
    sasl = {"kafka_bootstrap_servers": stage.cluster.sasl_bootstrap, "kafka_security_protocol": "SASL_PLAINTEXT"}
    # longer than connections.max.reauth.ms, so that it authenticates again on the same connection
    java("java-4.3-plain", "4.3.1", "produce,consume", **sasl, **_jaas("PLAIN", "alice"), stay="4000")
    java("java-3.9-scram", "3.9.1", "produce,consume", **sasl, **_jaas("SCRAM-SHA-256", "bob"))
    finish()
    java("java-4.3-tls", "4.3.1", "produce,consume", **_tls(stage))
    common = {"topic": "events", "count": "10"}
    running.append(stage.python("confluent_client", "librdkafka", {**common, "compression": "snappy"}, _CONFLUENT))
    login = {
        "kafka.bootstrap.servers": stage.cluster.sasl_bootstrap,
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "SCRAM-SHA-256",
        "kafka.sasl.username": "alice",
        "kafka.sasl.password": USERS["alice"],
    }
    running.append(stage.python("confluent_client", "librdkafka-scram", {**common, **login}, _CONFLUENT))
    finish()
    common["topic"] = "letters"
    running.append(
        stage.python("kafka_python_client", "kafka-python", {**common, "compression": "gzip"}, _KAFKA_PYTHON)
    )
    # this release still speaks SaslHandshake v0 with bare tokens behind it
    login = {
        "kafka.bootstrap.servers": stage.cluster.sasl_bootstrap,
        "kafka.security_protocol": "SASL_PLAINTEXT",
        "kafka.sasl_mechanism": "PLAIN",
        "kafka.sasl_plain_username": "bob",
        "kafka.sasl_plain_password": USERS["bob"],
    }
    running.append(stage.python("kafka_python_client", "kafka-python-2.0", {**common, **login}, _OLD_KAFKA_PYTHON))
    finish()


def _dotted(name: str) -> str:
    return name.replace("_", ".")


def _jaas(mechanism: str, user: str) -> dict[str, str]:
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    login = f'org.apache.kafka.common.security.{module} required username="{user}" password="{USERS[user]}";'
    return {"kafka_sasl_mechanism": mechanism, "kafka_sasl_jaas_config": login}


def _tls(stage: Stage) -> dict[str, str]:
    keys = stage.cluster.keys
    if keys is None:
        raise RuntimeError("this cluster has no TLS listener")
    return {
        "kafka_bootstrap_servers": stage.cluster.tls_bootstrap,
        "kafka_security_protocol": "SSL",
        "kafka_ssl_truststore_type": "PEM",
        "kafka_ssl_truststore_location": str(keys.certificate),
    }


RECIPES = {
    "share": Recipe(
        "a share group with a member that hangs past its lock, one that halts, one that leaves with records in hand, a "
        "poison record released until it is archived, a record rejected, renewals",
        share,
    ),
    "streams": Recipe(
        "a streams group with standbys: members join, one crashes, one leaves",
        streams,
    ),
    "quorum": Recipe(
        "three controllers and an observer from their first byte: a follower frozen and thawed, the leader killed and "
        "started again, DescribeQuorum polled",
        quorum,
        {"nodes": 3, "observer": True},
        whole=True,
    ),
    "clients": Recipe(
        "Java 2.8.2, 3.9.1 and 4.3.1, librdkafka, kafka-python 3.0.12 and 2.0.6 produce and consume: five "
        "compressions, transactions, acks=0, SASL PLAIN and SCRAM, re-authentication, TLS",
        _clients,
        {"tls": True, "sasl": True, "settings": {"listener.name.sasl.connections.max.reauth.ms": "3000"}},
        nanoseconds=True,
    ),
}
