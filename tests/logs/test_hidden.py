"""Values of settings are shown only if Kafka itself defines the setting as no password."""

import json
from pathlib import Path

import pytest

from kafkascope.codec.message import encode
from kafkascope.codec.records.record_data import Record, encode_records, new_batch
from kafkascope.logs.hidden import is_open_setting
from tests.support.cli import Cli

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32


@pytest.mark.parametrize(
    ("resource", "name", "shown"),
    [
        (TOPIC, "retention.ms", True), (TOPIC, "unclean.leader.election.enable", True), (TOPIC, "custom.key", False),
        (BROKER, "log.retention.ms", True), (BROKER, "ssl.keystore.password", False),
        (BROKER, "listener.name.sasl.ssl.keystore.location", True),
        (BROKER, "listener.name.sasl.ssl.keystore.password", False),
        (BROKER, "listener.name.sasl.plain.sasl.jaas.config", False), (BROKER, "sasl.jaas.config", False),
        (BROKER, "delegation.token.secret.key", False), (BROKER, "plugin.secret", False),
        (CLIENT_METRICS, "interval.ms", True), (GROUP, "share.auto.offset.reset", True),
        (TOPIC, "log.retention.ms", False), (99, "retention.ms", False),
    ],
)  # fmt: skip
def test_only_known_settings_that_are_no_passwords_are_shown(resource: int, name: str, shown: bool) -> None:
    assert is_open_setting(resource, name) is shown


def test_a_password_in_the_metadata_log_is_not_printed(cli: Cli, tmp_path: Path) -> None:
    def setting(name: str, value: str) -> bytes:
        body = {"resourceType": BROKER, "resourceName": "1", "name": name, "value": value}
        return bytes([1, 4, 0]) + encode("ConfigRecord", 0, body)

    settings = {"ssl.keystore.password": "store-secret", "log.retention.ms": "77000"}
    records = [Record(at, 1, None, setting(*pair)) for at, pair in enumerate(settings.items())]
    path = tmp_path / "__cluster_metadata-0" / f"{0:020}.log"
    path.parent.mkdir()
    path.write_bytes(encode_records([new_batch(records)]))
    for flags in (["--json"], [], ["--records"], ["--records", "--json"]):
        printed = cli("log", *flags, str(path)).out
        assert "store-secret" not in printed
        assert "77000" in printed
    rows = [json.loads(line) for line in cli("log", "--json", str(path)).out.splitlines()]
    values = [row["value"]["value"] for row in rows if row["kind"] == "record"]
    assert values == [None, "77000"]
