"""Secrets are planted everywhere they can be, and then looked for everywhere they must not be."""

import asyncio
import io
import logging
import os
import pickle
import subprocess
import sys
import traceback
from dataclasses import fields
from pathlib import Path

import click
import pytest

from kafkascope.cli.live.options import live_options, settings_from
from kafkascope.cli.main import main
from kafkascope.client.cluster import connect
from kafkascope.client.config.file import read_config
from kafkascope.client.config.jaas import parse_jaas
from kafkascope.client.config.jks import LockedKey
from kafkascope.client.config.merge import PartialSettings
from kafkascope.client.settings import Address, Sasl, Secret, Settings, Tls
from kafkascope.errors import KafkascopeError
from lab.cluster import Cluster
from lab.secured import MECHANISMS, SASL_TLS
from lab.settings import SASL

PLANTED = "Pl4nted-s3cret"


def everything_said(value: object) -> str:
    return f"{value!r} {value!s} {value} {[value]} {{{value!r}}}"


def test_a_secret_shows_itself_to_nobody() -> None:
    secret = Secret(PLANTED)
    assert secret.reveal() == PLANTED
    for shown in (everything_said(secret), f"{secret:>20}", "%s %r" % (secret, secret), str(vars_of(secret))):  # noqa: UP031
        assert PLANTED not in shown
    with pytest.raises(TypeError, match="can't be serialized"):
        pickle.dumps(secret)


def vars_of(value: object) -> object:
    return getattr(value, "__dict__", None)


def test_settings_show_no_secret() -> None:
    secret = Secret(PLANTED)
    tls = Tls(certificate=b"c", key=secret, key_password=secret)
    sasl = Sasl("PLAIN", "alice", secret, token=secret, token_client_secret=secret)
    assert PLANTED not in everything_said(Settings((Address("a", 1),), tls=tls, sasl=sasl))
    # every field that can hold one is a Secret: a new field of another type fails here
    names = {
        field.name for kind in (Tls, Sasl, PartialSettings) for field in fields(kind) if "Secret" in str(field.type)
    }
    all_names = {field.name for kind in (Tls, Sasl, PartialSettings) for field in fields(kind)}
    suspicious = {name for name in all_names if any(part in name for part in ("password", "secret", "key"))}
    assert suspicious <= names
    assert names >= {"password", "key_password", "store_password", "ca_password", "token", "token_client_secret"}


def test_what_was_read_from_a_file_shows_no_secret(tmp_path: Path) -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    line = f'{module} required username="a" password="{PLANTED}";'
    (tmp_path / "c").write_text(
        f"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config={line}\n"
        f"ssl.truststore.password={PLANTED}\nssl.keystore.password={PLANTED}\nssl.key.password={PLANTED}\n"
        f"ssl.keystore.certificate.chain=x\nssl.keystore.key={PLANTED}\n"
    )
    config = read_config(tmp_path / "c")
    assert config.password == Secret(PLANTED)
    assert PLANTED not in everything_said(config)
    assert PLANTED not in everything_said(parse_jaas(line, "file"))
    assert PLANTED not in everything_said(LockedKey("a", [], PLANTED.encode()))


def test_no_flag_takes_a_secret() -> None:
    @click.command
    @live_options
    def command(**_: object) -> None: ...

    for parameter in command.params:
        name = str(parameter.name)
        if any(word in name for word in ("password", "secret")) or name.startswith("token"):
            plain = name in ("token_url", "token_client_id", "token_scope", "token_ca")
            assert plain or name.endswith("_file"), name


def wrong(mechanism: str) -> Sasl:
    secret = Secret(PLANTED)
    if mechanism == "OAUTHBEARER":
        return Sasl(mechanism, token=Secret(f"{PLANTED}.{PLANTED}.{PLANTED}"))
    return Sasl(mechanism, "alice", secret)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("listener", [SASL, SASL_TLS])
def test_a_failed_login_leaves_no_trace_of_it(
    secured_cluster: Cluster, mechanism: str, listener: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """Not in the error, its traceback with all that is chained to it, nor in asyncio's own debug log."""
    caplog.set_level(logging.DEBUG)
    host, _, port = secured_cluster.addresses(listener).rpartition(":")
    tls = Tls(ca=secured_cluster.certificates.ca.read_bytes()) if listener == SASL_TLS else None
    seen: list[object] = []

    async def ask() -> None:
        settings = Settings((Address(host, int(port)),), sasl=wrong(mechanism), tls=tls)
        async with connect(settings, every_answer=seen.append):
            pass

    with pytest.raises(KafkascopeError) as caught:
        asyncio.run(ask(), debug=True)
    error = caught.value
    trace = "".join(traceback.format_exception(error, chain=True))
    for text in (trace, caplog.text, everything_said(error), everything_said(seen)):
        assert PLANTED not in text


def test_the_command_line_keeps_it_to_itself(
    secured_cluster: Cluster, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real process: its output, its place in the process list, and nothing left on disk."""
    monkeypatch.setenv("KAFKASCOPE_PASSWORD", PLANTED)
    (tmp_path / "home").mkdir()
    command = [sys.executable, "-X", "dev", "-m", "tests.client.say_cmdline", "call"]
    command += [secured_cluster.addresses(SASL), "Metadata", "--sasl-mechanism", "PLAIN", "--username", "alice"]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "home"), "HOME": str(tmp_path / "home")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert done.returncode == 4, done.stderr
    assert "login as alice with PLAIN failed" in done.stderr and "Traceback" not in done.stderr
    assert "--username" in done.stdout  # the process list was looked at
    assert PLANTED not in done.stdout + done.stderr
    assert [path for path in (tmp_path / "home").rglob("*") if path.is_file()] == []
    captured = capfd.readouterr()
    assert PLANTED not in captured.out + captured.err


@pytest.mark.parametrize("flag", ["--password", "--token", "--key-password", "--token-client-secret"])
def test_a_secret_typed_as_a_flag_is_refused_without_repeating_it(
    flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["call", "a:1", "Metadata", f"{flag}={PLANTED}"])
    captured = capsys.readouterr()
    assert code == 2 and PLANTED not in captured.out + captured.err


def test_a_secret_in_a_url_is_not_repeated(tmp_path: Path) -> None:
    (tmp_path / "s").write_text(PLANTED)
    options = {
        "token_url": f"http://user:{PLANTED}@127.0.0.1:1/token?key={PLANTED}",
        "token_client_id": "id",
        "token_client_secret_file": tmp_path / "s",
    }
    settings = settings_from("127.0.0.1:1", options)

    async def ask() -> None:
        from kafkascope.client.auth.oauth import token_of

        assert settings.sasl
        await token_of(settings.sasl)

    with pytest.raises(KafkascopeError) as caught:
        asyncio.run(ask())
    text = io.StringIO()
    traceback.print_exception(caught.value, file=text)
    assert PLANTED not in text.getvalue()
