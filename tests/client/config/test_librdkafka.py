"""librdkafka's config: its names, its grammar, and how a file is told from Java's."""

from pathlib import Path

import pytest

from kafkascope.client.config.file import read_config
from kafkascope.client.config.librdkafka import READ, from_librdkafka, parse_librdkafka
from kafkascope.client.config.merge import PartialSettings
from kafkascope.client.settings import Secret
from kafkascope.errors import InputError, UsageError


def read(text: str) -> PartialSettings:
    return from_librdkafka(parse_librdkafka(text), "file")


def test_backslashes_hashes_and_equals_are_part_of_a_value() -> None:
    assert parse_librdkafka("# a=b\n sasl.password = a\\b#c=d \n\nnonsense\nx=1\nx=2") == {
        "sasl.password": "a\\b#c=d",
        "x": "2",
    }


def test_names() -> None:
    config = read("metadata.broker.list=a:1,b:2\nclient.id=me\nsocket.timeout.ms=4000\n")
    assert (config.bootstrap, config.client_id, config.timeout) == ("a:1,b:2", "me", 4.0)
    assert (config.tls, config.sasl, config.notes) == (False, False, ())


def test_tls() -> None:
    config = read(
        "security.protocol=ssl\nssl.ca.location=ca.pem\nssl.certificate.location=c.pem\nssl.key.location=k.pem\n"
        "ssl.key.password=x\nssl.endpoint.identification.algorithm=none\nenable.ssl.certificate.verification=false"
    )
    assert (config.tls, config.ca, config.certificate, config.key) == (
        True,
        Path("ca.pem"),
        Path("c.pem"),
        Path("k.pem"),
    )
    assert (config.key_password, config.any_host_name, config.insecure) == (Secret("x"), True, True)


def test_certificates_in_the_file() -> None:
    config = read("security.protocol=ssl\nssl.ca.pem=-----BEGIN CERTIFICATE-----\\nQUJD\\n-----END CERTIFICATE-----\\n")
    assert config.ca_pem == b"-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n"


def test_sasl() -> None:
    config = read("security.protocol=sasl_ssl\nsasl.mechanisms=SCRAM-SHA-256\nsasl.username=a\nsasl.password=b")
    assert (config.tls, config.sasl, config.sasl_mechanism) == (True, True, "SCRAM-SHA-256")
    assert (config.username, config.password) == ("a", Secret("b"))
    assert read("security.protocol=sasl_ssl").sasl_mechanism == "GSSAPI"


def test_oauth() -> None:
    config = read(
        "security.protocol=sasl_ssl\nsasl.mechanism=OAUTHBEARER\nsasl.oauthbearer.method=oidc\n"
        "sasl.oauthbearer.token.endpoint.url=https://a/b\nsasl.oauthbearer.client.id=id\n"
        "sasl.oauthbearer.client.secret=x\nsasl.oauthbearer.scope=s\nsasl.oauthbearer.extensions=a=1,b=2\n"
        "https.ca.location=ca.pem"
    )
    assert (config.token_url, config.token_client_id, config.token_client_secret) == ("https://a/b", "id", Secret("x"))
    assert (config.token_scope, config.extensions, config.token_ca) == ("s", (("a", "1"), ("b", "2")), Path("ca.pem"))
    with pytest.raises(UsageError, match="oidc"):
        read("security.protocol=sasl_ssl\nsasl.mechanism=OAUTHBEARER\nsasl.oauthbearer.method=other")


def test_what_matters_and_is_not_understood_is_named() -> None:
    config = read("ssl.crl.location=x\nsasl.user=a\nqueue.buffering.max.ms=1\ngroup.id=g\nmetadata.broker.lists=x:1")
    assert config.notes == (
        "file: not supported and ignored: sasl.user, ssl.crl.location",
        "file: metadata.broker.lists is unknown; did you mean metadata.broker.list?",
    )


@pytest.mark.parametrize(
    ("text", "password"),
    [
        # a backslash is itself to librdkafka, and escapes to Java
        ("sasl.mechanisms=PLAIN\nsasl.username=a\nsasl.password=a\\tb", "a\\tb"),
        (
            "sasl.mechanism=PLAIN\nsasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
            'username="a" password="a\\tb";',
            "a\tb",
        ),
    ],
)
def test_a_file_is_told_by_its_keys(tmp_path: Path, text: str, password: str) -> None:
    path = tmp_path / "f"
    path.write_text(f"bootstrap.servers=a:1\nsecurity.protocol=SASL_SSL\n{text}\n")
    assert read_config(path).password == Secret(password)


def test_leftovers_of_the_other_kind_are_named(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("security.protocol=SSL\nssl.truststore.location=t\nssl.truststore.password=p\nssl.ca.location=c\n")
    config = read_config(path)
    assert config.ca == Path("t") and config.notes == (f"{path}: not supported and ignored: ssl.ca.location",)


@pytest.mark.parametrize(("content", "message"), [(b"a\0b", "isn't text"), (b"#" * 1_048_577, "larger")])
def test_what_is_no_file_of_settings_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_config(tmp_path / "f")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"/f: no such file"):
        read_config(tmp_path / "f")


def test_every_name_is_one_that_librdkafka_knows() -> None:
    """Its own library judges."""
    import sys

    from lab.jars import python_path

    sys.path.insert(0, str(python_path("confluent-kafka==2.16.1")))
    try:
        from confluent_kafka import KafkaException, Producer  # type: ignore[import-not-found]
    finally:
        sys.path.pop(0)
    unknown = []
    for name in READ:
        try:
            # no value fits all of them; a wrong one is another error than an unknown name
            Producer({name: "\1"})
        except KafkaException as error:
            if "No such configuration property" in str(error):
                unknown.append(name)
    assert unknown == []
