"""Clients of every age and library, each with another way to compress or to log in."""

from lab.jars import PYTHON_CLIENTS
from lab.program import Program
from lab.settings import USERS
from lab.stage import Stage

_CONFLUENT, _KAFKA_PYTHON, _OLD_KAFKA_PYTHON = PYTHON_CLIENTS


def play(stage: Stage) -> None:
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
    # this release still speaks SaslHandshake v0 followed by bare tokens
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
