"""Files of settings that are broken in the ways people break them, a secret in each: nothing that is said about them
holds it, in whatever case."""

import os
from pathlib import Path

import pytest

from kafkascope.cli.live.options import settings_from
from kafkascope.client.config.environment import VARIABLE_PREFIX
from kafkascope.errors import KafkascopeError

PLANTED = "S3cr3tX"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
JAAS_HEAD = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config="

JAAS_LINES = [
    f'{PLAIN} required username="alice" password="top"{PLANTED}" ;',
    f"{PLAIN} required username=alice password=top {PLANTED};",
    f"{PLAIN} required username=alice password=top {PLANTED}=x;",
    f"{PLAIN} required username=alice password=top {PLANTED} = ;",
    f'{PLAIN} required username="alice password={PLANTED}";',
    f'{PLAIN} required username="alice" pasword="{PLANTED}";',
    f'{PLAIN} required user="alice" password="{PLANTED}";',
    f'{PLAIN} required username="alice" "{PLANTED}";',
    f'{PLAIN} required {PLANTED}="alice";',
    f'{PLAIN} {PLANTED} username="alice";',
    f"{PLANTED} required username=alice password=x;",
    f"x.{PLANTED} required username=alice password=x;",
    f'{PLAIN} required username="alice" password="{PLANTED}"',
    f'{PLAIN} required username="alice" password="a"; {PLANTED} required;',
    f"{PLAIN} required username=alice password=1{PLANTED};",
    f"{PLAIN} required username=alice password={PLANTED}\\;",
    f"{PLAIN} required username=alice password:{PLANTED};",
    f"{PLAIN} required username=alice password='{PLANTED}",
    f"{PLAIN} required password={PLANTED};",
    f"{PLAIN} required username=alice password=/{PLANTED};",
]

FILES = [
    *(JAAS_HEAD + line for line in JAAS_LINES),
    f"bootstrap.servers=user:{PLANTED}@host:9092",
    f"bootstrap.servers={PLANTED}@host:9092",
    f"bootstrap.servers=host:9092 sasl.password={PLANTED}",
    f"bootstrap.servers=host:{PLANTED}",
    f"bootstrap.servers=ok:1,ho st{PLANTED}:1",
    f"metadata.broker.list=user:{PLANTED}@host:9092",
    f"sasl.username=u\nsasl.password {PLANTED}=",
    f"sasl.username=u\nsasl.password:{PLANTED}=",
    f"sasl.username=u\nsasl.password{PLANTED}=x",
    f"sasl.username=u\nsasl.password.{PLANTED}=x",
    f"sasl.username=u\nsasl.{PLANTED}=x",
    f"sasl.username=u\nsasl.password{PLANTED.lower()}=x",
    f"sasl.username=u\nsasl.password.{PLANTED.lower()}=x",
    f"sasl.username=u\nssl.key.password-{PLANTED.lower()}=x",
    "sasl.username=u\nsasl.passwordhunter=x".replace("hunter", "scrtx"),
    f"ssl.key.password\\={PLANTED}=x",
    f"ssl.truststore.password\\ {PLANTED}=x",
    f"sasl.jaas.config\\:{PLANTED}=x",
    f"bootstrap.servers\\ {PLANTED}=x",
    f"security.protocol=SASL_SSL sasl.password={PLANTED}",
    f"security.protocol={PLANTED}",
    f"sasl.username=u\nsecurity.protocol={PLANTED}",
    f"request.timeout.ms=1000 ssl.key.password={PLANTED}",
    f"sasl.username=u\nsocket.timeout.ms=1000 sasl.password={PLANTED}",
    f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN sasl.password={PLANTED}",
    f"sasl.username=u\nsecurity.protocol=sasl_plaintext\nsasl.mechanisms=PLAIN sasl.password={PLANTED}",
    f"sasl.username=u\nsecurity.protocol=sasl_ssl\nsasl.mechanisms=OAUTHBEARER\nsasl.oauthbearer.method={PLANTED}",
    f"security.protocol=SSL\nssl.truststore.location=/no/where ssl.truststore.password={PLANTED}",
    f"security.protocol=SSL\nssl.keystore.location=/no/where ssl.keystore.password={PLANTED}",
    f"sasl.username=u\nsecurity.protocol=ssl\nssl.ca.location=/no/where ssl.key.password={PLANTED}",
    f"security.protocol=SSL\nssl.truststore.certificates={PLANTED}",
    f"security.protocol=SSL\nssl.keystore.certificate.chain={PLANTED}\nssl.keystore.key={PLANTED}",
    f"ssl.key.password=\\u{PLANTED}",
    "security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\n"
    f"sasl.oauthbearer.token.endpoint.url=http://u:{PLANTED}@h/?k={PLANTED}",
]


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(VARIABLE_PREFIX):
            monkeypatch.delenv(name)


def said_about(text: str, path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    path.write_text(text)
    shown = ""
    for host in ("-", "h:1"):
        try:
            settings_from(host, {"config": path})
        except KafkascopeError as error:
            shown += f"{error!r} {error.__cause__!r}"
    captured = capsys.readouterr()
    return shown + captured.out + captured.err


@pytest.mark.parametrize("number", range(len(FILES)))
def test_no_error_or_warning_about_a_broken_file_holds_the_secret(
    number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    message = said_about(FILES[number], tmp_path / "c", capsys)
    message = message.replace(repr(tmp_path), "")
    for part in (PLANTED, "scrtx"):
        assert part.lower() not in message.lower(), FILES[number]


@pytest.mark.parametrize("drop", ['"', "=", ";", " ", "\n", "PlainLoginModule", "required", "password", "username"])
def test_nor_about_a_good_file_that_lacks_one_thing(
    drop: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every occurrence of the thing is taken out once, and put in once too often."""
    java = f'{JAAS_HEAD}{PLAIN} required username="alice" password="{PLANTED}" ;\nssl.key.password={PLANTED}\n'
    librdkafka = (
        "security.protocol=sasl_ssl\nsasl.mechanisms=PLAIN\nsasl.username=alice\n"
        f"sasl.password={PLANTED}\nssl.key.password = {PLANTED}\n"
    )
    for text in (java, librdkafka):
        at = text.find(drop)
        while at >= 0:
            for changed in (text[:at] + text[at + len(drop) :], text[:at] + drop + text[at:]):
                assert PLANTED.lower() not in said_about(changed, tmp_path / "c", capsys).lower(), changed
            at = text.find(drop, at + 1)


@pytest.mark.parametrize("name", ["client.id", "sasl.username", "sasl.oauthbearer.client.id"])
def test_a_value_that_is_shown_holds_no_other_key(name: str, tmp_path: Path) -> None:
    (tmp_path / "c").write_text(f"sasl.mechanisms=PLAIN\n{name}=alice sasl.password={PLANTED}\n")
    with pytest.raises(KafkascopeError, match=f"the value of {name} contains another key") as caught:
        settings_from("h:1", {"config": tmp_path / "c"})
    assert PLANTED not in str(caught.value)


def test_a_wrong_address_of_a_file_is_told_by_file_and_key(tmp_path: Path) -> None:
    (tmp_path / "c").write_text(f"bootstrap.servers=a:1,user:{PLANTED}@host:9092")
    with pytest.raises(KafkascopeError, match=r"/c: bootstrap\.servers: address 2 .*HOST:PORT"):
        settings_from("-", {"config": tmp_path / "c"})


def test_an_unknown_key_is_told_as_far_as_it_is_a_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = said_about(f"sasl.username=u\nsasl.password {PLANTED}=\nsasl.user=x", tmp_path / "c", capsys)
    assert "not supported and ignored: sasl.password…, sasl.user\n" in message


def test_misspelt_options_of_a_login_module_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = said_about(f'{JAAS_HEAD}{PLAIN} required user="alice" pasword="{PLANTED}";', tmp_path / "c", capsys)
    assert "/c: sasl.jaas.config: unknown option user; did you mean username?" in message
    assert "/c: sasl.jaas.config: unknown option pasword; did you mean password?" in message
    assert "PLAIN needs a user" in message and "username in sasl.jaas.config" in message


def test_a_store_of_a_file_that_is_not_there_is_told_by_file_and_key(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("security.protocol=SSL\nssl.truststore.location=/nonexist")
    with pytest.raises(KafkascopeError, match=r"/c: ssl\.truststore\.location: /nonexist: no such file"):
        settings_from("h:1", {"config": tmp_path / "c"})
