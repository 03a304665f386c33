"""No secret and no payload anywhere: lake, report, logs, Spark's event log. Contents of records only where they are
asked for, credentials never, and with pseudonyms nobody's name."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafkascope.errors import InputError
from kafkascope.lake.home import open_lake
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.lake.tables import body_table
from kafkascope.pipeline.ingestion.ingest import Options, ingest
from kafkascope.pipeline.ingestion.pseudonyms import CLIENTS, KEY_FILE, PLACES, PRINCIPALS, RESOURCES, SEALED, TEXTS
from kafkascope.schema.catalog import apis
from tests.pipeline.rows import lake_rows
from tests.pipeline.secrets_planted import (
    BROKER,
    CLIENT_ID,
    CONTENTS,
    CREDENTIALS,
    PACKED,
    PEOPLE,
    USER,
    capture,
    found_in,
    request_log,
)
from tests.pipeline.test_ingest import capture as recorded
from tests.pipeline.test_ingest import pieces

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = """
spark.eventLog.enabled true
spark.eventLog.compress false
spark.eventLog.rolling.enabled false
spark.eventLog.dir file://{folder}/events
spark.local.dir {folder}/local
"""


@dataclass(frozen=True, slots=True)
class Ran:
    folder: Path
    secret: bytes

    def lake(self, name: str) -> Path:
        return self.folder / name


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    given_folder, folder = tmp_path_factory.mktemp("given"), tmp_path_factory.mktemp("private")
    recordings = [capture(given_folder / "night.pcap"), request_log(given_folder / "night.log")]
    assert found_in(recordings[0].read_bytes(), CREDENTIALS) == set(CREDENTIALS)
    for name in ("conf", "events", "local"):
        (folder / name).mkdir()
    (folder / "conf" / "spark-defaults.conf").write_text(SETTINGS.format(folder=folder))
    key = given_folder / "key"
    with open(folder / "out.txt", "wb") as out:
        done = subprocess.run(
            [sys.executable, "-m", "tests.pipeline.private_run", str(folder), *map(str, recordings)],
            cwd=ROOT,
            env={**os.environ, "SPARK_CONF_DIR": str(folder / "conf"), KEY_FILE: str(key)},
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        )
    assert done.returncode == 0, (folder / "out.txt").read_text()[-3000:]
    return Ran(folder, key.read_bytes())


def held(path: Path) -> bytes:
    """Every byte of a file, and of a Parquet file every value too."""
    content = path.read_bytes()
    if path.suffix == ".parquet":
        return content + b"\n".join(values(pq.ParquetFile(path).read().to_pylist()))
    return content


def values(value: Any) -> Iterator[bytes]:
    match value:
        case dict():
            for key, item in value.items():
                yield from values(key)
                yield from values(item)
        case list() | tuple():
            for item in value:
                yield from values(item)
        case bytes():
            yield value
        case _:
            yield str(value).encode()


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_no_secret_and_no_payload_is_written_anywhere(ran: Ran) -> None:
    """Nor is the key of the pseudonyms."""
    looked_at = [path for path in files(ran.folder) if ran.lake("contents") not in path.parents]
    for path in looked_at:
        content = held(path)
        assert not found_in(content, [*CREDENTIALS, *CONTENTS]), path
        assert ran.secret not in content and ran.secret.hex().encode() not in content, path
    # All of these were there to look at.
    assert (ran.folder / "plain.html").exists() and (ran.folder / "shared.json").exists()
    (events,) = files(ran.folder / "events")
    assert b"SparkListenerSQLExecutionStart" in events.read_bytes()
    assert (ran.folder / "spark.log").stat().st_size > 10_000
    assert b"Ingested(" in (ran.folder / "out.txt").read_bytes()
    home = open_lake(str(ran.lake("plain")))
    for table in ("sasl_authenticate_request", "envelope_request", "fetch_snapshot_response", "unfinished", "findings"):
        assert dataset(home, table).count_rows(), table
    # By itself and within an Envelope, of the capture and of the log.
    for table in ("alter_user_scram_credentials_request", "create_delegation_token_response"):
        assert dataset(home, table).count_rows() == 4, table


def test_contents_are_stored_where_they_are_asked_for_and_credentials_never(ran: Ran) -> None:
    leaked: set[str] = set()
    for path in files(ran.lake("contents")):
        content = held(path)
        assert not found_in(content, CREDENTIALS), path
        leaked |= found_in(content, CONTENTS)
    assert leaked == set(CONTENTS)


def test_names_addresses_and_principals_are_nowhere_in_a_lake_to_share(ran: Ran) -> None:
    for path in [*files(ran.lake("shared")), ran.folder / "shared.html", ran.folder / "shared.json"]:
        content = held(path)
        assert not found_in(content, PEOPLE), path
        assert not any(packed.hex().encode() in content for packed in PACKED), path
        # Four bytes may be anywhere; as a value of their own they are an address.
        if path.suffix == ".parquet":
            assert not set(values(pq.ParquetFile(path).read().to_pylist())) & set(PACKED), path


def column(lake: Path, table: str, name: str) -> list[Any]:
    column_values: list[Any] = dataset(open_lake(str(lake)), table).to_table(columns=[name]).column(0).to_pylist()
    return column_values


def inside(lake: Path, table: str, name: str, part: str) -> set[Any]:
    return {element[part] for row in column(lake, table, name) for element in row}


def test_alike_names_are_alike_under_their_pseudonyms(ran: Ran) -> None:
    lake = ran.lake("shared")
    (client,) = {name for name in column(lake, "exchanges", "client_id") if name is not None}
    assert client.startswith("client-") and client != CLIENT_ID
    assert set(column(lake, "fetch_request", "client_id")) == {client}
    assert set(column(lake, "client_versions", "client_id")) - {None} == {client}
    (broker,) = set(column(lake, "exchanges", "broker_address"))
    assert broker.startswith("host-") and broker.endswith(":9092")
    # What the capture and the log say of it, and Metadata by its name, is one broker.
    (pseudonym,) = inside(lake, "metadata_response", "brokers", "host")
    assert f"{pseudonym}:9092" == broker and BROKER not in broker
    plain = ran.lake("plain")
    assert len(set(column(lake, "connections", "client_address"))) == len(
        set(column(plain, "connections", "client_address"))
    )
    (user,) = inside(lake, "describe_user_scram_credentials_response", "results", "user")
    assert inside(lake, "alter_user_scram_credentials_request", "upsertions", "name") == {user} and USER not in user
    assert inside(lake, "create_acls_request", "creations", "principal") == {f"User:{user}"}
    quotas = [quota for row in column(lake, "describe_client_quotas_response", "entries") for quota in row]
    host = column(lake, "connections", "client_address")[0].rpartition(":")[0]
    assert {name["entity_name"] for quota in quotas for name in quota["entity"]} == {user, client, host}
    assert set(column(lake, "exchanges", "status")) == set(column(plain, "exchanges", "status"))


def test_a_later_recording_goes_on_from_what_pseudonyms_hide(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_FILE, str(tmp_path / "key"))
    path = recorded("share", tmp_path)
    alone, other = str(tmp_path / "one"), str(tmp_path / "other")
    ingest(spark, [path], alone, Options(pseudonymise=True))
    first, second = pieces(path, 2, seed=4)
    ingest(spark, [first], other, Options(pseudonymise=True))
    assert all(state.startswith(SEALED) for state in column(Path(other), "unfinished", "state"))
    with monkeypatch.context() as patch:
        patch.setenv(KEY_FILE, str(tmp_path / "another"))
        with pytest.raises(InputError, match="another key"):
            ingest(spark, [second], other, Options(pseudonymise=True))
    ingest(spark, [second], other, Options(pseudonymise=True))
    assert lake_rows(alone) == lake_rows(other)


# Names of text in bodies that say nothing of anybody, or are of the cluster: topics, groups, settings, states.
NOBODYS = frozenset(
    """
    assignor_name client_instance_id client_software_name client_software_version cluster_id configuration_keys
    cordoned_log_dirs documentation entity_type error feature group_id group_ids group_state group_type groups
    groups_names id incarnation_id key listener log_dir log_dirs mechanism mechanisms name offline_log_dirs
    owner_principal_type path principal_type process_id protocol_data protocol_name protocol_type
    repartition_sink_topics replica_directory_id candidate_directory_id requested_metrics server_assignor sink_topic
    source_topic_regex source_topics state_filters states_filter status_detail stores subscribed_topic_names
    subscribed_topic_regex subtopology_id successors token_id token_requester_principal_type topic topic_id topic_name
    topic_names transaction_state types_filter unknown_state_filters value voter_directory_id coordinator_keys
    exchange_id connection_id ingest_id
    """.split()
)


def test_every_text_of_a_body_is_somebodys_or_nobodys() -> None:
    """A new Kafka release may bring another: say in `pseudonyms` what it is, or here that it is nobody's."""
    texts = set()

    def visit(name: str, kind: pa.DataType) -> None:
        if pa.types.is_list(kind):
            visit(name, kind.value_type)
        elif pa.types.is_struct(kind):
            for field in kind:
                visit(field.name, field.type)
        elif pa.types.is_string(kind):
            texts.add(name)

    for api in apis().values():
        for kind in ("Request", "Response"):
            for field in body_table(f"{api}{kind}").schema:
                visit(field.name, field.type)
    somebodys = CLIENTS | PLACES | PRINCIPALS | TEXTS | RESOURCES
    assert texts - somebodys - NOBODYS == set()
    assert somebodys & NOBODYS == set()
