"""Java's client.properties: what it says to us, its JAAS lines, and what is named because we lack it."""

# ruff: noqa: S106 - keys that hold passwords

from pathlib import Path

import pytest

from kafkascope.client.config.file import read_config
from kafkascope.client.config.jaas import parse_jaas
from kafkascope.client.config.java import from_java
from kafkascope.client.config.merge import PartialSettings
from kafkascope.client.settings import Secret
from kafkascope.errors import InputError, UsageError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


def java(**keys: str) -> PartialSettings:
    return from_java({name.replace("_", "."): value for name, value in keys.items()}, "file")


def sasl(mechanism: str, jaas: str, **more: str) -> PartialSettings:
    return java(security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism, sasl_jaas_config=jaas, **more)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('username="alice" password="a b;c=d"', ("alice", "a b;c=d")),
        ("username='alice' password='it\"s'", ("alice", 'it"s')),
        ('username=alice password="a\\"b\\\\c"', ("alice", 'a"b\\c')),
        ('username="al\\u0069ce" password="\\101\\t"', ("alu0069ce", "A\t")),
        ('username="alice" /* a comment; */ password="x" // the rest\n', ("alice", "x")),
        ('\n username = "alice"\n password = "x"\n', ("alice", "x")),
        ('username="a-b_c$d" password="päss"', ("a-b_c$d", "päss")),
        ('serviceName=kafka username="alice" password=a-b.c_d$1', ("alice", "a-b.c_d$1")),
    ],
)
def test_quoting_of_jaas_lines(text: str, expected: tuple[str, str]) -> None:
    options = parse_jaas(f"{PLAIN} required {text};", "file").options
    assert (options["username"], options["password"]) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";",
        PLAIN,
        f"{PLAIN} required",
        f"{PLAIN} must password=topsecret;",
        f"{PLAIN} required password;",
        f"{PLAIN} required password=;",
        f"{PLAIN} required password=0topsecret;",
        f'{PLAIN} required password="topsecret;',
        f'{PLAIN} required password="topsecret"',
        f'{PLAIN} required password="topsecret"; {PLAIN} required;',
        f'{PLAIN} required ="topsecret";',
    ],
)
def test_a_broken_jaas_line_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_jaas(text, "file")
    assert "topsecret" not in str(caught.value) and str(caught.value).startswith("file: sasl.jaas.config")


def test_plain_and_scram_logins() -> None:
    config = sasl("PLAIN", f'{PLAIN} required username="alice" password="x";')
    assert (config.sasl, config.tls, config.sasl_mechanism) == (True, False, "PLAIN")
    assert (config.username, config.password, config.delegation_token) == ("alice", Secret("x"), None)
    config = sasl("SCRAM-SHA-512", f'{SCRAM} required username="id" password="x" tokenauth="true";')
    assert (config.sasl_mechanism, config.username, config.delegation_token) == ("SCRAM-SHA-512", "id", True)


def test_a_login_module_of_another_mechanism_is_named() -> None:
    with pytest.raises(InputError, match=r"sasl\.mechanism is PLAIN, but sasl\.jaas\.config has ScramLoginModule"):
        sasl("PLAIN", f'{SCRAM} required username="alice" password="x";')


def test_client_credentials_of_the_login_module() -> None:
    url = "https://idp.example.org/token"
    line = f'{OAUTH} required clientId="id" clientSecret="x" scope="all" extension_logicalCluster="lkc-1"'
    config = sasl("OAUTHBEARER", f'{line} ssl.truststore.location="ca.pem";', sasl_oauthbearer_token_endpoint_url=url)
    assert (config.token_url, config.token_client_id, config.token_client_secret) == (url, "id", Secret("x"))
    assert (config.token_scope, config.extensions) == ("all", (("logicalCluster", "lkc-1"),))
    assert config.token_ca == Path("ca.pem")


def test_client_credentials_of_the_file_hold_over_those_of_the_module() -> None:
    config = sasl(
        "OAUTHBEARER",
        f'{OAUTH} required clientId="old" clientSecret="old";',
        sasl_oauthbearer_token_endpoint_url="http://a/b",
        sasl_oauthbearer_client_credentials_client_id="new",
        sasl_oauthbearer_client_credentials_client_secret="new",
    )
    assert (config.token_client_id, config.token_client_secret) == ("new", Secret("new"))


def test_a_token_endpoint_can_be_a_file() -> None:
    config = sasl("OAUTHBEARER", f"{OAUTH} required;", sasl_oauthbearer_token_endpoint_url="file:///run/a%20token")
    assert (config.token_file, config.token_url) == (Path("/run/a token"), None)


def test_unsecured_tokens_are_named() -> None:
    with pytest.raises(UsageError, match="unsecured"):
        sasl("OAUTHBEARER", f'{OAUTH} required unsecuredLoginStringClaim_sub="alice";')


def test_without_a_mechanism_it_is_kerberos_as_in_java() -> None:
    assert java(security_protocol="SASL_SSL").sasl_mechanism == "GSSAPI"


@pytest.mark.parametrize(
    ("protocol", "tls", "on"),
    [("PLAINTEXT", False, False), ("ssl", True, False), ("SASL_PLAINTEXT", False, True), ("SASL_SSL", True, True)],
)
def test_security_protocols(protocol: str, tls: bool, on: bool) -> None:
    config = java(security_protocol=protocol)
    assert (config.tls, config.sasl) == (tls, on)


def test_stores_and_their_passwords() -> None:
    config = java(
        security_protocol="SSL",
        ssl_truststore_location="t.jks",
        ssl_truststore_password="tp",
        ssl_truststore_type="JKS",
        ssl_keystore_location="k.p12",
        ssl_keystore_password="kp",
        ssl_key_password="key",
    )
    assert (config.ca, config.ca_password) == (Path("t.jks"), Secret("tp"))
    assert (config.certificate, config.store_password, config.key_password) == (
        Path("k.p12"),
        Secret("kp"),
        Secret("key"),
    )


def pem(label: str, between: str) -> str:
    return between.join((f"-----BEGIN {label}-----", "QUJD", "REVG", f"-----END {label}-----"))


@pytest.mark.parametrize("between", ["\n", " ", ""])
def test_inline_pem_with_its_line_ends_or_without(between: str) -> None:
    config = java(
        security_protocol="SSL",
        ssl_truststore_type="PEM",
        ssl_truststore_certificates=pem("CERTIFICATE", between) + between + pem("CERTIFICATE", between),
        ssl_keystore_certificate_chain=pem("CERTIFICATE", between),
        ssl_keystore_key=pem("PRIVATE KEY", between),
    )
    assert config.ca_pem and config.certificate_pem and config.key_pem
    assert config.ca_pem.count(b"-----BEGIN CERTIFICATE-----\nQUJD") == 2
    assert config.certificate_pem.startswith(b"-----BEGIN CERTIFICATE-----\nQUJD")
    assert config.key_pem.reveal().startswith("-----BEGIN PRIVATE KEY-----\nQUJD")


@pytest.mark.parametrize(("value", "off"), [("", True), ("https", None), ("HTTPS", None)])
def test_an_empty_identification_algorithm_turns_the_check_of_the_name_off(value: str, off: bool | None) -> None:
    assert java(security_protocol="SSL", ssl_endpoint_identification_algorithm=value).any_host_name is off


def test_times_and_names() -> None:
    config = java(
        bootstrap_servers="a:1",
        client_id="me",
        request_timeout_ms="3000",
        default_api_timeout_ms="7000",
        socket_connection_setup_timeout_ms="500",
    )
    assert (config.bootstrap, config.client_id, config.timeout, config.connect_timeout) == ("a:1", "me", 7.0, 0.5)
    with pytest.raises(UsageError, match=r"file: request\.timeout\.ms"):
        java(request_timeout_ms="soon")


def test_controllers() -> None:
    config = java(bootstrap_controllers="a:1")
    assert (config.bootstrap, config.bootstrap_controller) == ("a:1", True)


def test_keys_of_producers_and_consumers_are_passed_over() -> None:
    keys = ("acks", "group.id", "auto.offset.reset", "key.serializer", "linger.ms", "max.poll.records", "client.rack")
    assert from_java(dict.fromkeys(keys, "x"), "file").notes == ()


def test_keys_that_matter_and_that_we_lack_are_named_in_one_line() -> None:
    config = java(ssl_engine_factory_class="x.Y", sasl_login_callback_handler_class="com.example.Handler")
    assert config.notes == (
        "file: not supported and ignored: sasl.login.callback.handler.class, ssl.engine.factory.class",
    )


def test_kafkas_own_handlers_are_what_we_do_anyway() -> None:
    package = "org.apache.kafka.common.security.oauthbearer"
    for handler in (f"{package}.OAuthBearerLoginCallbackHandler", f"{package}.secured.OAuthBearerLoginCallbackHandler"):
        assert java(sasl_login_callback_handler_class=handler).notes == ()


def test_a_typo_is_named() -> None:
    assert java(bootstrap_server="a:1").notes == ("file: bootstrap.server is unknown; did you mean bootstrap.servers?",)


def test_a_login_that_the_protocol_does_not_use_is_named() -> None:
    (note,) = java(sasl_jaas_config=f'{PLAIN} required username="a" password="topsecret";').notes
    assert "security.protocol is PLAINTEXT" in note and "topsecret" not in note


def test_config_providers_are_named() -> None:
    with pytest.raises(UsageError, match=r"sasl\.jaas\.config uses a config provider"):
        sasl("PLAIN", f'{PLAIN} required username="a" password="${{file:/x:y}}";', config_providers="file")


def test_a_dollar_without_providers_is_a_password() -> None:
    assert sasl("PLAIN", f'{PLAIN} required username="a" password="${{x}}";').password == Secret("${x}")


def test_an_unknown_protocol_lists_the_known() -> None:
    with pytest.raises(UsageError, match="PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"):
        java(security_protocol="TLS")


def test_a_file_with_continued_jaas_lines_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(
        f"""# as people write it
bootstrap.servers = broker-0:9093,\\
    broker-1:9093
security.protocol=SASL_SSL
sasl.mechanism=PLAIN
sasl.jaas.config={PLAIN} required \\
    username="alice" \\
    password="a\\\\"b";
"""
    )
    config = read_config(path)
    assert config.bootstrap == "broker-0:9093,broker-1:9093"
    assert (config.username, config.password) == ("alice", Secret('a"b'))
