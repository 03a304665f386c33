"""Stores as Java's keytool and OpenSSL's formats have them: certificates and keys come out as they went in."""

import ssl
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

from kafkascope.client.config.jks import read_jks
from kafkascope.client.config.key_stores import Identity, read_identity, read_trust
from kafkascope.client.settings import Secret, Tls
from kafkascope.client.transport.tls import context
from kafkascope.errors import InputError, UsageError
from lab.certificates import Certificates, make_certificates
from lab.jars import run

STORE, KEY = Secret("store-secret"), Secret("key-secret")
# keytool gives keys in PKCS12 the password of the store
PASSWORDS = {"JKS": KEY, "PKCS12": STORE}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stores")


@pytest.fixture(scope="module")
def certificates(folder: Path) -> Certificates:
    return make_certificates(folder)


def keytool(kind: str, store: Path, *arguments: str) -> Path:
    base = ["-keystore", str(store), "-storetype", kind, "-storepass", STORE.reveal(), "-noprompt"]
    run(["keytool", arguments[0], *base, *arguments[1:]])
    return store


KINDS = ("JKS", "PKCS12")


@pytest.fixture(scope="module")
def trust_stores(folder: Path, certificates: Certificates) -> dict[str, Path]:
    """The authority and a broker's own certificate."""
    (folder / "leaf.pem").write_bytes(one_certificate(certificates.other_host))
    made = {kind: folder / f"trust.{kind}" for kind in KINDS}
    for kind, store in made.items():
        for alias, file in (("authority", certificates.ca), ("broker", folder / "leaf.pem")):
            keytool(kind, store, "-importcert", "-alias", alias, "-file", str(file))
    return made


@pytest.fixture(scope="module")
def key_stores(folder: Path, certificates: Certificates) -> dict[str, Path]:
    """The client's key and certificate; in JKS the key has a password of its own."""
    key = load_pem_private_key(certificates.client.read_bytes(), None)
    assert isinstance(key, EllipticCurvePrivateKey)
    certificate = x509.load_pem_x509_certificate(one_certificate(certificates.client))
    authority = x509.load_pem_x509_certificate(certificates.ca.read_bytes())
    locked = BestAvailableEncryption(STORE.reveal().encode())
    source = folder / "source.p12"
    source.write_bytes(pkcs12.serialize_key_and_certificates(b"client", key, certificate, [authority], locked))
    made = {kind: folder / f"client.{kind}" for kind in KINDS}
    for kind, store in made.items():
        line = ["-srckeystore", str(source), "-srcstoretype", "PKCS12", "-srcstorepass", STORE.reveal()]
        line += ["-srcalias", "client", "-destkeypass", PASSWORDS[kind].reveal(), "-noprompt"]
        line += ["-destkeystore", str(store), "-deststoretype", kind, "-deststorepass", STORE.reveal()]
        run(["keytool", "-importkeystore", *line])
    return made


def one_certificate(path: Path) -> bytes:
    text = path.read_bytes()
    return text[text.index(b"-----BEGIN CERTIFICATE") :]


def der(pem: bytes) -> list[bytes]:
    return [certificate.public_bytes(Encoding.DER) for certificate in x509.load_pem_x509_certificates(pem)]


def key_of(pem: str) -> bytes:
    return load_pem_private_key(pem.encode(), None).private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())


@pytest.mark.parametrize("kind", KINDS)
def test_trusted_certificates_come_out(trust_stores: dict[str, Path], certificates: Certificates, kind: str) -> None:
    expected = der(certificates.ca.read_bytes()) + der(one_certificate(certificates.other_host))
    assert sorted(der(read_trust(trust_stores[kind], STORE))) == sorted(expected)


@pytest.mark.parametrize("kind", KINDS)
def test_key_and_chain_come_out(key_stores: dict[str, Path], certificates: Certificates, kind: str) -> None:
    identity = read_identity(key_stores[kind], None, STORE, PASSWORDS[kind])
    expected = der(one_certificate(certificates.client)) + der(certificates.ca.read_bytes())
    assert der(identity.certificate) == expected
    assert key_of(identity.key.reveal()) == key_of(certificates.client.read_text())
    context(Tls(certificate=identity.certificate, key=identity.key))


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_password_is_one_line_without_it(
    trust_stores: dict[str, Path], key_stores: dict[str, Path], kind: str
) -> None:
    for store in (trust_stores[kind], key_stores[kind]):
        with pytest.raises(InputError) as caught:
            read_identity(store, None, Secret("topsecret"), None)
        message = str(caught.value)
        assert caught.value.exit_code == 3 and caught.value.__cause__ is None
        assert message.startswith(str(store)) and "\n" not in message
        assert "password is wrong" in message and "topsecret" not in message


def test_a_wrong_password_of_the_key_alone_is_named(key_stores: dict[str, Path]) -> None:
    """Only JKS has keys with passwords of their own."""
    with pytest.raises(InputError, match="the password of its key 'client' is wrong"):
        read_identity(key_stores["JKS"], None, STORE, Secret("topsecret"))
    with pytest.raises(InputError, match="needs a password"):
        read_identity(key_stores["JKS"], None, None, None)


def test_a_changed_jks_store_is_refused(trust_stores: dict[str, Path], tmp_path: Path) -> None:
    content = bytearray(trust_stores["JKS"].read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "changed").write_bytes(content)
    with pytest.raises(InputError, match="was modified"):
        read_trust(tmp_path / "changed", STORE)


def test_a_jks_trust_store_opens_without_a_password_as_in_java(trust_stores: dict[str, Path]) -> None:
    assert len(der(read_trust(trust_stores["JKS"], None))) == 2


def test_a_jks_store_cut_anywhere_is_one_line(key_stores: dict[str, Path], trust_stores: dict[str, Path]) -> None:
    for store in (key_stores["JKS"], trust_stores["JKS"]):
        content = store.read_bytes()
        for end in range(4, len(content) - 20):
            with pytest.raises(InputError, match="isn't a complete JKS"):
                read_jks(content[:end] + bytes(20), None, "store")


@pytest.mark.parametrize("kind", KINDS)
def test_a_trust_store_has_no_key(trust_stores: dict[str, Path], kind: str) -> None:
    with pytest.raises(InputError, match="no private key"):
        read_identity(trust_stores[kind], None, STORE, None)


def test_pem_in_one_file_or_two(certificates: Certificates, tmp_path: Path) -> None:
    both = read_identity(certificates.client, None, None, None)
    (tmp_path / "c").write_bytes(b"Bag Attributes\n" + both.certificate)
    (tmp_path / "k").write_text(both.key.reveal())
    assert read_identity(tmp_path / "c", tmp_path / "k", None, None) == both
    with pytest.raises(InputError, match="--key FILE"):
        read_identity(tmp_path / "c", None, None, None)


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
def test_encrypted_pem_keys(certificates: Certificates, tmp_path: Path, form: PrivateFormat) -> None:
    key = load_pem_private_key(certificates.client.read_bytes(), None)
    locked = key.private_bytes(Encoding.PEM, form, BestAvailableEncryption(KEY.reveal().encode()))
    (tmp_path / "k").write_bytes(locked)
    (tmp_path / "c").write_bytes(one_certificate(certificates.client))
    identity = read_identity(tmp_path / "c", tmp_path / "k", None, KEY)
    context(Tls(certificate=identity.certificate, key=identity.key, key_password=identity.key_password))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"hello", "has no certificate to trust"),
        (b"\xce\xce\xce\xce\0", "JCEKS"),
        (b"\x30\x82\x01\x00", "needs a password"),
        (b"\xfe\xed\xfe\xed" + bytes(40), "no whole JKS|certificate to trust"),
        (bytes(16_777_217), "larger"),
    ],
)
def test_what_is_no_store_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_trust(tmp_path / "f", None)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="/f: no such file"):
        read_trust(tmp_path / "f", None)


def test_without_the_extra_pkcs12_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f").write_bytes(b"\x30\x82\x01\x00")
    for name in [name for name in sys.modules if name.startswith("cryptography")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(UsageError, match=r"pip install 'kafkascope\[live\]'"):
        read_trust(tmp_path / "f", Secret("x"))


def test_cryptography_stays_unloaded_where_it_is_not_needed(certificates: Certificates) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from kafkascope.cli.live.options import settings_from\n"
        "from kafkascope.client.transport.tls import context\n"
        f"made = settings_from('a:1', {{'ca': Path({str(certificates.ca)!r}),"
        f" 'certificate': Path({str(certificates.client)!r})}})\n"
        "context(made.tls)\n"
        "sys.exit(any(name.startswith('cryptography') for name in sys.modules))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_an_identity_is_shown_without_its_key() -> None:
    assert "topsecret" not in repr(Identity(b"c", Secret("topsecret")))


def test_the_system_trusts_its_own_without_a_store() -> None:
    assert context(Tls()).verify_mode == ssl.CERT_REQUIRED
