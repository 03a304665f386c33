"""Addresses, and what wins: flags over variables over the file over defaults."""

import os
import pty
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from kafkascope.cli.live.options import live_options, settings_from
from kafkascope.client.config.environment import VARIABLE_PREFIX, from_environment, variables
from kafkascope.client.settings import Address, Secret, Settings, parse_address, parse_addresses, parse_resolve
from kafkascope.errors import InputError, UsageError

SECONDS = 30.0


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(VARIABLE_PREFIX):
            monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("text", "host", "port", "shown"),
    [
        ("localhost:9092", "localhost", 9092, "localhost:9092"),
        ("localhost", "localhost", 9092, "localhost:9092"),
        ("10.0.0.1:1", "10.0.0.1", 1, "10.0.0.1:1"),
        ("[::1]:9093", "::1", 9093, "[::1]:9093"),
        ("[::1]", "::1", 9092, "[::1]:9092"),
        ("SASL_SSL://broker-0.example.org:9094", "broker-0.example.org", 9094, "broker-0.example.org:9094"),
    ],
)
def test_addresses(text: str, host: str, port: int, shown: str) -> None:
    assert parse_address(text) == Address(host, port)
    assert str(parse_address(text)) == shown


@pytest.mark.parametrize("text", ["", ":9092", "a:b", "a:0", "a:65536", "::1", "a:1:2", "a b:1", "http://x/y", "a:١"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_address(text)


def test_several_addresses_each_once() -> None:
    assert parse_addresses("a:1, b:2,a:1,") == (Address("a", 1), Address("b", 2))


def test_resolve_keeps_the_port_where_only_a_host_follows() -> None:
    named = Address("broker-0.kafka", 9092)
    assert parse_resolve("broker-0.kafka:9092=127.0.0.1") == (named, Address("127.0.0.1", 9092))
    assert parse_resolve("broker-0.kafka:9092=[::1]:19092") == (named, Address("::1", 19092))
    with pytest.raises(UsageError, match="HOST:PORT=ADDRESS"):
        parse_resolve("broker-0.kafka:9092")


def test_without_anything_the_defaults_hold() -> None:
    assert settings_from("localhost:9092", {}) == Settings((Address("localhost", 9092),))


def test_defaults_in_the_help_are_those_of_the_settings() -> None:
    @click.command
    @live_options
    def command(**_: Any) -> None: ...

    helps = {parameter.name: parameter.help for parameter in command.params if isinstance(parameter, click.Option)}
    defaults = Settings(())
    assert str(helps["timeout"]).endswith(f"; default {defaults.timeout:g}.")
    assert str(helps["connect_timeout"]).endswith(f"; default {defaults.connect_timeout:g}.")
    assert str(helps["client_id"]).endswith(f"; default {defaults.client_id}.")


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_flags_over_variables_over_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = write(tmp_path / "c", "bootstrap.servers=file:1\nclient.id=file\nrequest.timeout.ms=1000\n")
    assert settings_from("-", {"config": config}) == Settings((Address("file", 1),), client_id="file", timeout=1.0)
    monkeypatch.setenv("KAFKASCOPE_CLIENT_ID", "variable")
    monkeypatch.setenv("KAFKASCOPE_BOOTSTRAP", "variable:1")
    assert settings_from("-", {"config": config}) == Settings(
        (Address("variable", 1),), client_id="variable", timeout=1.0
    )
    flags = {"config": config, "client_id": "flag"}
    assert settings_from("flag:1", flags) == Settings((Address("flag", 1),), client_id="flag", timeout=1.0)


def test_the_file_can_be_named_by_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = write(tmp_path / "c", "bootstrap.servers=file:1")
    monkeypatch.setenv("KAFKASCOPE_CONFIG", str(config))
    assert settings_from("-", {}).bootstrap == (Address("file", 1),)


SCRAM_FILE = (
    "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config="
    'org.apache.kafka.common.security.scram.ScramLoginModule required username="file" password="of-file";'
)


def test_another_user_does_not_get_the_password_of_the_file(tmp_path: Path) -> None:
    config = write(tmp_path / "c", SCRAM_FILE)
    sasl = settings_from("a:1", {"config": config}).sasl
    assert sasl and (sasl.username, sasl.password) == ("file", Secret("of-file"))
    with pytest.raises(UsageError, match="needs a password"):
        settings_from("a:1", {"config": config, "username": "other"})


def test_a_password_from_a_variable_goes_with_the_user_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKASCOPE_PASSWORD", "of-variable")
    sasl = settings_from("a:1", {"config": write(tmp_path / "c", SCRAM_FILE)}).sasl
    assert sasl and (sasl.username, sasl.password) == ("file", Secret("of-variable"))


def test_a_password_from_a_variable_goes_with_the_user_of_a_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKASCOPE_PASSWORD", "of-variable")
    sasl = settings_from("a:1", {"sasl_mechanism": "PLAIN", "username": "flag"}).sasl
    assert sasl and (sasl.username, sasl.password) == ("flag", Secret("of-variable"))


def test_a_given_token_is_taken_instead_of_the_endpoint_of_the_file(tmp_path: Path) -> None:
    config = write(
        tmp_path / "c",
        "security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\nsasl.oauthbearer.token.endpoint.url=http://a/b\n",
    )
    sasl = settings_from("a:1", {"config": config, "token_file": tmp_path / "t"}).sasl
    assert sasl and (sasl.token_file, sasl.token_url) == (tmp_path / "t", None)


def test_naming_certificates_or_users_turns_tls_and_sasl_on(tmp_path: Path) -> None:
    password = write(tmp_path / "p", "secret\n")
    settings = settings_from("a:1", {"server_name": "b"})
    assert settings.tls and settings.tls.server_name == "b" and settings.sasl is None
    settings = settings_from("a:1", {"username": "u", "password_file": password, "sasl_mechanism": "plain"})
    assert settings.tls is None and settings.sasl and settings.sasl.mechanism == "PLAIN"


def test_no_tls_holds_over_a_file_with_tls(tmp_path: Path) -> None:
    config = write(tmp_path / "c", "security.protocol=SSL")
    assert settings_from("a:1", {"config": config}).tls is not None
    assert settings_from("a:1", {"config": config, "tls": False}).tls is None


def test_a_token_alone_means_oauthbearer(tmp_path: Path) -> None:
    sasl = settings_from("a:1", {"token_file": tmp_path / "t"}).sasl
    assert sasl and sasl.mechanism == "OAUTHBEARER"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"username": "u"}, "the SASL mechanism is missing"),
        ({"sasl_mechanism": "PLAIN"}, "--username"),
        ({"sasl_mechanism": "PLAIN", "username": "u"}, "--password-file"),
        ({"sasl_mechanism": "OAUTHBEARER"}, "--token-file"),
        ({"token_url": "http://a"}, "--token-client-id"),
        ({"token_url": "http://a", "token_client_id": "x"}, "--token-client-secret-file"),
        ({"key": Path("k"), "tls": True}, "--certificate"),
        ({"resolve": ("a",)}, "HOST:PORT=ADDRESS"),
    ],
)
def test_what_is_missing_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        settings_from("a:1", options)


def test_no_address_anywhere_names_the_three_places() -> None:
    with pytest.raises(UsageError, match="KAFKASCOPE_BOOTSTRAP"):
        settings_from("-", {})


@pytest.mark.parametrize(
    ("content", "expected"), [("\ufeffx\n", "x"), ("x\n", "x"), ("x\r\n", "x"), (" x ", " x "), ("x\n\n", "x\n")]
)
def test_one_line_end_is_no_part_of_a_secret(tmp_path: Path, content: str, expected: str) -> None:
    path = tmp_path / "p"
    path.write_bytes(content.encode())
    sasl = settings_from("a:1", {"sasl_mechanism": "PLAIN", "username": "u", "password_file": path}).sasl
    assert sasl and sasl.password and sasl.password.reveal() == expected


@pytest.mark.parametrize(
    ("content", "message"), [(b"", "empty"), (b"\n", "empty"), (b"\xff", "UTF-8"), (b"x" * 70_000, "larger")]
)
def test_a_file_that_holds_no_secret_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "p").write_bytes(content)
    with pytest.raises(InputError, match=f"/p.* {message}"):
        settings_from("a:1", {"sasl_mechanism": "PLAIN", "username": "u", "password_file": tmp_path / "p"})


def test_every_flag_has_its_variable() -> None:
    @click.command
    @live_options
    def command(**_: Any) -> None: ...

    flags = {f"{VARIABLE_PREFIX}{parameter.name}".upper() for parameter in command.params}
    # secrets themselves and the addresses have a variable and no flag
    alone = {"BOOTSTRAP", "PASSWORD", "CA_PASSWORD", "KEY_PASSWORD", "TOKEN", "TOKEN_CLIENT_SECRET"}
    assert set(variables()) == flags | {f"{VARIABLE_PREFIX}{name}" for name in alone}


def test_variables_say_what_flags_say(tmp_path: Path) -> None:
    secret = write(tmp_path / "s", "s\n")
    settings = from_environment(
        {
            "KAFKASCOPE_TLS": "yes",
            "KAFKASCOPE_INSECURE": "0",
            "KAFKASCOPE_TIMEOUT": "2.5",
            "KAFKASCOPE_CA": "ca.pem",
            "KAFKASCOPE_RESOLVE": "a:1=b, c:1=d",
            "KAFKASCOPE_CA_PASSWORD_FILE": str(secret),
            "KAFKASCOPE_TOKEN": " t\n",
            "KAFKASCOPE_USERNAME": "",
        }
    )
    assert (settings.tls, settings.insecure, settings.timeout, settings.ca) == (True, False, 2.5, Path("ca.pem"))
    assert settings.resolve == ("a:1=b", "c:1=d")
    assert (settings.ca_password, settings.token, settings.username, settings.sasl) == (
        Secret("s"),
        Secret("t"),
        None,
        True,
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [("TLS", "maybe"), ("TIMEOUT", "soon"), ("TIMEOUT", "-1"), ("TIMEOUT", "inf"), ("TIMEOUT", "nan")],
)
def test_a_variable_that_makes_no_sense_is_named(name: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"{VARIABLE_PREFIX}{name}"):
        from_environment({f"{VARIABLE_PREFIX}{name}": value})


def test_flags_come_through_click(tmp_path: Path) -> None:
    made: list[Settings] = []

    @click.command
    @click.argument("host")
    @live_options
    def command(host: str, **live: Any) -> None:
        made.append(settings_from(host, live))

    password = write(tmp_path / "p", "secret")
    line = (
        "h:1 --tls --timeout 3 --connect-timeout 1 --resolve a:1=b --resolve c:1=d --sasl-mechanism PLAIN --username u"
    )
    line += f" --password-file {password} --bootstrap-controller --any-host-name --insecure --client-id me"
    result = CliRunner().invoke(command, line.split(), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    (settings,) = made
    assert settings.controllers and settings.timeout == 3 and settings.connect_timeout == 1
    assert [str(dialled) for _, dialled in settings.resolve] == ["b:1", "d:1"]
    assert settings.tls and not settings.tls.verify and not settings.tls.check_host_name
    assert settings.client_id == "me" and settings.sasl and settings.sasl.password == Secret("secret")


@pytest.mark.parametrize("value", ["0", "-1", "x", "nan"])
def test_a_timeout_is_a_number_above_zero(value: str) -> None:
    @click.command
    @live_options
    def command(**_: Any) -> None: ...

    assert CliRunner().invoke(command, ["--timeout", value]).exit_code == 2


def test_at_a_terminal_the_password_is_asked_for_and_does_not_show() -> None:
    """A real pseudo terminal: what is typed must come back neither there nor on standard output."""
    code = (
        "from kafkascope.cli.live.options import settings_from\n"
        "made = settings_from('a:1', {'sasl_mechanism': 'PLAIN', 'username': 'alice'})\n"
        "print('got it' if made.sasl.password.reveal() == 'typed-secret' else 'wrong')\n"
    )
    shown = typed(b"typed-secret\n", 0, code)
    assert b"got it" in shown and b"typed-secret" not in shown


def test_ctrl_d_at_the_prompt_is_one_line() -> None:
    command = "from kafkascope.cli.main import main; import sys; sys.exit(main(sys.argv[1:]))"
    arguments = ["call", "a:1", "Metadata", "--sasl-mechanism", "PLAIN", "--username", "alice"]
    shown = typed(b"\x04", 2, command, *arguments)
    assert b"\nkafkascope: PLAIN needs a password: --password-file FILE" in shown and b"Traceback" not in shown


@pytest.mark.parametrize("text", ["http://broker:9092", "HTTPS://broker", "user:pw@broker:1"])
def test_what_is_a_url_is_no_address(text: str) -> None:
    with pytest.raises(UsageError, match="HOST:PORT") as caught:
        parse_address(text)
    assert "pw" not in str(caught.value)


def test_an_address_that_says_tls_is_not_dialled_without() -> None:
    for text in ("SSL://a:1", "a:1,sasl_ssl://b:1"):
        with pytest.raises(UsageError, match="add --tls, or --no-tls"):
            settings_from(text, {})
        assert settings_from(text, {"tls": True}).tls is not None
        assert settings_from(text, {"tls": False}).tls is None
    assert settings_from("PLAINTEXT://a:1", {}).tls is None


def test_a_wrong_variable_for_addresses_is_named_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKASCOPE_BOOTSTRAP", "a:1 password=pw")
    with pytest.raises(UsageError, match=r"^KAFKASCOPE_BOOTSTRAP: address 1 isn't valid") as caught:
        settings_from("-", {})
    assert "pw" not in str(caught.value)


def typed(answer: bytes, code: int, *command: str) -> bytes:
    """What a terminal shows of a Python program that asks for alice's password, is answered and exits with `code`."""
    ours, theirs = pty.openpty()
    # in a session of its own, so that there is no other terminal to ask at
    child = subprocess.Popen(
        [sys.executable, "-c", *command], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    try:
        shown = read_until(ours, b"password of alice: ")
        os.write(ours, answer)
        shown += read_until(ours, None)
        assert child.wait(SECONDS) == code
    finally:
        child.kill()
        child.wait()
        os.close(ours)
    return shown


def read_until(terminal: int, expected: bytes | None) -> bytes:
    """None: to the end."""
    shown = b""
    while expected is None or expected not in shown:
        assert select.select([terminal], [], [], SECONDS)[0], shown
        try:
            part = os.read(terminal, 1024)
        except OSError:
            part = b""
        if not part:
            return shown
        shown += part
    return shown
