"""The command line where it cannot connect: one clear line on standard error, the right exit code, nothing else."""

from pathlib import Path

import pytest

from kafkascope.cli.main import main
from lab.cluster import Cluster
from lab.jars import run
from lab.secured import EXPIRED, MTLS, OTHER_HOST
from lab.settings import PLAIN, SASL, TLS

LOGIN = ["--sasl-mechanism", "SCRAM-SHA-256", "--username", "alice", "--password-file", "{wrong}"]
CASES = {
    "wrong password": (SASL, LOGIN, 4, "login as alice with SCRAM-SHA-256 failed"),
    "Kerberos": (
        SASL,
        ["--sasl-mechanism", "GSSAPI"],
        4,
        "kafkascope doesn't have GSSAPI (Kerberos); the broker offers",
    ),
    "expired": (EXPIRED, ["--ca", "{ca}"], 4, "expired on"),
    "other host": (OTHER_HOST, ["--ca", "{ca}"], 4, "it is for broker.example.org"),
    "unknown authority": (TLS, ["--tls"], 4, "--ca FILE"),
    "client certificate": (MTLS, ["--ca", "{ca}"], 4, "requires a client certificate"),
    "TLS to plain text": (PLAIN, ["--ca", "{ca}"], 4, "a listener without TLS does that"),
    "plain text to TLS": (TLS, [], 4, "--tls"),
    "no login": (SASL, [], 4, "--sasl-mechanism"),
    "key store's password": (
        MTLS,
        ["--certificate", "{store}", "--key-password-file", "{wrong}"],
        3,
        "password is wrong",
    ),
    "missing file": (TLS, ["--ca", "{none}"], 3, "no such file"),
    "file of settings": (TLS, ["--config", "{wrong}"], 4, "--tls"),
    "no mechanism": (SASL, ["--username", "alice"], 2, "the SASL mechanism is missing"),
}


@pytest.fixture(scope="module")
def files(secured_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("files")
    (folder / "wrong").write_text("topsecret\n")
    made = {"wrong": folder / "wrong", "none": folder / "none", "ca": secured_cluster.certificates.ca}
    store = ["-keystore", str(folder / "store"), "-storetype", "JKS", "-storepass", "store-secret", "-alias", "a"]
    run(["keytool", "-genkeypair", *store, "-keyalg", "EC", "-dname", "CN=a"])
    return {**made, "store": folder / "store"}


@pytest.mark.parametrize("name", CASES)
def test_one_clear_line(
    secured_cluster: Cluster, files: dict[str, Path], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    listener, flags, code, expected = CASES[name]
    place = secured_cluster.addresses(listener)
    arguments = ["call", place, "Metadata", *(flag.format_map(files) for flag in flags)]
    assert main(arguments) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1 and expected in captured.err and "topsecret" not in captured.err
    assert code != 4 or place in captured.err


def test_the_same_flags_connect(secured_cluster: Cluster, tmp_path: Path) -> None:
    """What the lines above advise works."""
    (tmp_path / "p").write_text("alice-secret\n")
    login = ["--sasl-mechanism", "SCRAM-SHA-256", "--username", "alice", "--password-file", str(tmp_path / "p")]
    made = secured_cluster.certificates
    for listener, flags in (
        (SASL, login),
        (TLS, ["--ca", str(made.ca)]),
        (MTLS, ["--ca", str(made.ca), "--certificate", str(made.client)]),
        (OTHER_HOST, ["--ca", str(made.ca), "--server-name", "broker.example.org"]),
        (EXPIRED, ["--insecure"]),
        (PLAIN, ["--no-tls"]),
    ):
        assert main(["call", secured_cluster.addresses(listener), "Metadata", *flags]) == 0
