"""Writes a node's server.properties: what one machine needs, and timeouts so short that a crash shows within
seconds."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"

# lab credentials, known to everyone: they end up in recordings
USERS = {"alice": "alice-secret", "bob": "bob-secret"}
STORE_PASSWORD = "lab-secret"  # noqa: S105

# (listener, security protocol); the first is also what brokers use between themselves
PLAIN = ("PLAINTEXT", "PLAINTEXT")
TLS = ("TLS", "SSL")
SASL = ("SASL", "SASL_PLAINTEXT")
CONTROLLER = ("CONTROLLER", "PLAINTEXT")

# Kafka's defaults are 45 s sessions and 30 s locks: an incident would take minutes to record
GROUPS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "4000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.share.session.timeout.ms": "4000",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.heartbeat.interval.ms": "1000",
    "group.share.min.heartbeat.interval.ms": "200",
    "group.share.record.lock.duration.ms": "3000",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.initialize.retry.interval.ms": "1000",
    "group.streams.session.timeout.ms": "4000",
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.heartbeat.interval.ms": "1000",
    "group.streams.min.heartbeat.interval.ms": "200",
    "group.streams.initial.rebalance.delay.ms": "0",
}


@dataclass(frozen=True, slots=True)
class Place:
    """A node: its number, what it is, where it keeps its data, and its port by listener name."""

    node: int
    roles: tuple[str, ...]
    folder: Path
    ports: Mapping[str, int]

    def address(self, listener: str) -> str:
        return f"{HOST}:{self.ports[listener]}"


def server_properties(
    place: Place,
    controllers: list[str],
    replicas: int,
    key_store: Path | None,
    extra: Mapping[str, str],
    listeners: Mapping[str, str] | None = None,
) -> str:
    """`controllers` are the addresses of all controllers, `replicas` how many brokers can hold a copy, `listeners`
    those beyond the usual ones by security protocol."""
    served = [name for name in place.ports if name != CONTROLLER[0] or "controller" in place.roles]
    protocols = {**dict((PLAIN, TLS, SASL, CONTROLLER)), **(listeners or {})}
    lines = {
        "process.roles": ",".join(place.roles),
        "node.id": str(place.node),
        "controller.quorum.bootstrap.servers": ",".join(controllers),
        "controller.listener.names": CONTROLLER[0],
        "inter.broker.listener.name": PLAIN[0],
        "listeners": ",".join(f"{name}://{place.address(name)}" for name in served),
        "advertised.listeners": ",".join(f"{name}://{place.address(name)}" for name in served),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
        "log.dirs": str(place.folder / "data"),
        "offsets.topic.replication.factor": str(replicas),
        "offsets.topic.num.partitions": "3",
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "3",
        "share.coordinator.state.topic.replication.factor": str(replicas),
        "share.coordinator.state.topic.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "3",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "controlled.shutdown.enable": "true",
        **GROUPS,
        **_tls(key_store),
        **_sasl(place),
        **extra,
    }
    return "".join(f"{name}={value}\n" for name, value in lines.items())


def _tls(key_store: Path | None) -> dict[str, str]:
    if key_store is None:
        return {}
    return {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(key_store),
        "ssl.keystore.password": STORE_PASSWORD,
    }


def _sasl(place: Place) -> dict[str, str]:
    if SASL[0] not in place.ports:
        return {}
    prefix = f"listener.name.{SASL[0].lower()}"
    users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
    module = "org.apache.kafka.common.security"
    return {
        f"{prefix}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        f"{prefix}.plain.sasl.jaas.config": f"{module}.plain.PlainLoginModule required {users};",
        f"{prefix}.scram-sha-256.sasl.jaas.config": f"{module}.scram.ScramLoginModule required;",
    }


def log4j1(folder: Path) -> str:
    """The same for releases before 4.0."""
    lines = ["log4j.rootLogger=WARN, server"]
    for name in ("server", "request"):
        lines += [
            f"log4j.appender.{name}=org.apache.log4j.FileAppender",
            f"log4j.appender.{name}.File={folder}/{name}.log",
            f"log4j.appender.{name}.layout=org.apache.log4j.PatternLayout",
            f"log4j.appender.{name}.layout.ConversionPattern=[%d] %p %m (%c)%n",
        ]
    lines += ["log4j.logger.kafka.server.KafkaRaftServer=INFO", "log4j.logger.org.apache.kafka.raft.QuorumState=INFO"]
    lines += ["log4j.logger.kafka.request.logger=DEBUG, request", "log4j.additivity.kafka.request.logger=false"]
    return "\n".join(lines) + "\n"


def log4j2(folder: Path) -> str:
    """Kafka's own layout; the request log in a file of its own."""
    return f"""<Configuration status="error">
  <Appenders>
    <File name="server" fileName="{folder}/server.log"><PatternLayout pattern="[%d] %p %m (%c)%n"/></File>
    <File name="request" fileName="{folder}/request.log"><PatternLayout pattern="[%d] %p %m (%c)%n"/></File>
  </Appenders>
  <Loggers>
    <Root level="warn"><AppenderRef ref="server"/></Root>
    <Logger name="kafka.server.KafkaRaftServer" level="info"/>
    <Logger name="org.apache.kafka.raft.QuorumState" level="info"/>
    <Logger name="kafka.request.logger" level="debug" additivity="false"><AppenderRef ref="request"/></Logger>
  </Loggers>
</Configuration>
"""
