"""Files that Java's client and librdkafka connect with: we connect with the same files, to the same broker."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkascope.cli.live.options import settings_from
from kafkascope.client.cluster import connect
from lab.cluster import Cluster
from lab.jars import JVM, joined, kafka_path, python_path, run
from lab.secured import MTLS, SASL_TLS, SECURED_USERS
from lab.settings import SASL, TLS
from lab.tokens import TokenServer

STORE = "store-secret"
PASSWORD = SECURED_USERS["alice"]
JAAS = "sasl.jaas.config=org.apache.kafka.common.security"


@pytest.fixture(scope="module")
def endpoint(secured_cluster: Cluster) -> Iterator[TokenServer]:
    with TokenServer(secured_cluster.tokens, SECURED_USERS) as server:
        yield server


def cluster_id(config: Path) -> str:
    async def ask() -> str:
        async with connect(settings_from("-", {"config": config})) as cluster:
            answer = await cluster.call("DescribeCluster", {})
            id_of_cluster: str = answer.value["clusterId"]
            return id_of_cluster

    return asyncio.run(ask())


@pytest.fixture(scope="module")
def java_files(
    secured_cluster: Cluster, endpoint: TokenServer, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("java")
    made = secured_cluster.certificates
    pem = made.client.read_text()
    key, _, chain = pem.partition("-----BEGIN CERTIFICATE-----")
    chain = f"-----BEGIN CERTIFICATE-----{chain}"
    for kind in ("JKS", "PKCS12"):
        trust = ["-keystore", str(folder / f"trust.{kind}"), "-storetype", kind, "-storepass", STORE, "-noprompt"]
        run(["keytool", "-importcert", *trust, "-alias", "authority", "-file", str(made.ca)])
    openssl = ["openssl", "pkcs12", "-export", "-in", str(made.client), "-name", "client"]
    run([*openssl, "-out", str(folder / "source.p12"), "-passout", f"pass:{STORE}"])
    source = ["-srckeystore", str(folder / "source.p12"), "-srcstoretype", "PKCS12", "-srcstorepass", STORE]
    target = ["-destkeystore", str(folder / "key.JKS"), "-deststoretype", "JKS", "-deststorepass", STORE, "-noprompt"]
    run(["keytool", "-importkeystore", *source, *target])
    texts = {
        "mtls-jks": f"""bootstrap.servers={secured_cluster.addresses(MTLS)}
security.protocol=SSL
ssl.truststore.location={folder}/trust.JKS
ssl.truststore.password={STORE}
ssl.keystore.location={folder}/key.JKS
ssl.keystore.password={STORE}
ssl.key.password={STORE}
""",
        "mtls-inline": f"""bootstrap.servers={secured_cluster.addresses(MTLS)}
security.protocol=SSL
ssl.truststore.type=PEM
ssl.truststore.certificates={_continued(made.ca.read_text())}
ssl.keystore.type=PEM
ssl.keystore.certificate.chain={_continued(chain)}
ssl.keystore.key={_continued(key)}
""",
        "tls-pem": f"""bootstrap.servers={secured_cluster.addresses(TLS)}
security.protocol=SSL
ssl.truststore.type=PEM
ssl.truststore.location={made.ca}
""",
        "scram-pkcs12": f"""bootstrap.servers={secured_cluster.addresses(SASL_TLS)}
security.protocol=SASL_SSL
ssl.truststore.type=PKCS12
ssl.truststore.location={folder}/trust.PKCS12
ssl.truststore.password={STORE}
sasl.mechanism=SCRAM-SHA-512
{JAAS}.scram.ScramLoginModule required \\
    username="alice" \\
    password="{PASSWORD}";
""",
        "oauth": f"""bootstrap.servers={secured_cluster.addresses(SASL)}
security.protocol=SASL_PLAINTEXT
sasl.mechanism=OAUTHBEARER
sasl.login.callback.handler.class=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler
sasl.oauthbearer.token.endpoint.url={endpoint.url}
{JAAS}.oauthbearer.OAuthBearerLoginModule required clientId="alice" clientSecret="{PASSWORD}" scope='a b';
""",
    }
    files = {name: folder / f"{name}.properties" for name in texts}
    for name, file in files.items():
        file.write_text(texts[name])
    return files


def _continued(text: str) -> str:
    return text.strip().replace("\n", " \\\n  ")


def test_javas_files_reach_the_same_cluster_as_javas_client(
    java_files: dict[str, Path], endpoint: TokenServer, capsys: pytest.CaptureFixture[str]
) -> None:
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={endpoint.url}"
    reach = str(Path(__file__).parent / "Reach.java")
    quiet = ["-Dlog4j2.level=ERROR", allowed, "-cp", joined(kafka_path()), reach]
    java = run(["java", *JVM, *quiet, *map(str, java_files.values())]).split()
    assert len(set(java)) == 1
    assert {name: cluster_id(file) for name, file in java_files.items()} == dict(zip(java_files, java, strict=True))
    assert endpoint.asked[-1] == {"grant_type": ["client_credentials"], "scope": ["a b"]}
    # nothing in these files is left out
    assert capsys.readouterr().err == ""


def librdkafka_texts(cluster: Cluster, endpoint: TokenServer, folder: Path) -> dict[str, str]:
    made = cluster.certificates
    return {
        "mtls": f"""metadata.broker.list={cluster.addresses(MTLS)}
security.protocol=ssl
ssl.ca.location={made.ca}
ssl.certificate.location={made.client}
ssl.key.location={made.client}
""",
        "keystore": f"""bootstrap.servers={cluster.addresses(MTLS)}
security.protocol=ssl
ssl.ca.location={made.ca}
ssl.keystore.location={folder}/source.p12
ssl.keystore.password={STORE}
""",
        "scram": f"""bootstrap.servers={cluster.addresses(SASL_TLS)}
security.protocol=sasl_ssl
ssl.ca.location={made.ca}
sasl.mechanisms=SCRAM-SHA-256
sasl.username=alice
sasl.password={PASSWORD}
""",
        "oauth": f"""bootstrap.servers={cluster.addresses(SASL)}
security.protocol=sasl_plaintext
sasl.mechanisms=OAUTHBEARER
sasl.oauthbearer.method=oidc
sasl.oauthbearer.token.endpoint.url={endpoint.url}
sasl.oauthbearer.client.id=alice
sasl.oauthbearer.client.secret={PASSWORD}
""",
    }


def test_librdkafkas_files_reach_the_same_cluster_as_librdkafka(
    secured_cluster: Cluster, java_files: dict[str, Path], endpoint: TokenServer, tmp_path: Path
) -> None:
    folder = java_files["oauth"].parent
    code = (
        "import sys\nfrom confluent_kafka.admin import AdminClient\n"
        "for name in sys.argv[1:]:\n"
        "    keys = dict(line.rstrip().split('=', 1) for line in open(name))\n"
        "    admin = AdminClient(keys)\n"
        "    admin.poll(0)\n"
        "    print(admin.list_topics(timeout=30).cluster_id)\n"
    )
    files: dict[str, Path] = {}
    for name, text in librdkafka_texts(secured_cluster, endpoint, folder).items():
        files[name] = tmp_path / name
        files[name].write_text(text)
    environment = {"PYTHONPATH": str(python_path("confluent-kafka==2.16.1"))}
    command = [sys.executable, "-c", code, *map(str, files.values())]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    theirs = done.stdout.split()
    assert len(theirs) == len(files) and len(set(theirs)) == 1, done.stderr
    assert {name: cluster_id(file) for name, file in files.items()} == dict(zip(files, theirs, strict=True))
