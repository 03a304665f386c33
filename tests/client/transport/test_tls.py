"""TLS and mTLS to a real broker, and one clear line for each way in which it can go wrong."""

import asyncio
import os
import re
import socket
import ssl
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from kafkascope.cli.live.options import settings_from
from kafkascope.client.cluster import connect
from kafkascope.client.config.key_stores import read_identity
from kafkascope.client.settings import Address, Secret, Settings, Tls, parse_addresses, parse_resolve
from kafkascope.client.transport.tls import context
from kafkascope.errors import InputError, ReachError
from lab.certificates import Certificates, make_certificates
from lab.cluster import Cluster
from lab.secured import EXPIRED, MTLS, OTHER_HOST
from lab.settings import PLAIN, TLS


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def brokers(addresses: str, tls: Tls | None, **more: Any) -> list[int]:
    """The node ids that a connection gets to see."""

    async def ask() -> list[int]:
        async with connect(Settings(parse_addresses(addresses), tls=tls, **more)) as cluster:
            answer = await cluster.call("Metadata", {"topics": []})
            return [broker["nodeId"] for broker in answer.value["brokers"]]

    return asyncio.run(ask())


def refusal(addresses: str, tls: Tls | None, **more: Any) -> str:
    with pytest.raises(ReachError) as caught:
        brokers(addresses, tls, **more)
    assert caught.value.exit_code == 4
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(addresses)
    return message


@pytest.fixture
def trusting(secured_cluster: Cluster) -> Tls:
    return Tls(ca=secured_cluster.certificates.ca.read_bytes())


def shown(path: Path) -> dict[str, Any]:
    identity = read_identity(path, None, None, None)
    return {"certificate": identity.certificate, "key": identity.key}


def test_tls(secured_cluster: Cluster, trusting: Tls) -> None:
    assert brokers(secured_cluster.addresses(TLS), trusting) == [1]


def test_mtls(secured_cluster: Cluster, trusting: Tls) -> None:
    tls = Tls(ca=trusting.ca, **shown(secured_cluster.certificates.client))
    assert brokers(secured_cluster.addresses(MTLS), tls) == [1]


def test_a_client_certificate_is_wanted(secured_cluster: Cluster, trusting: Tls) -> None:
    message = refusal(secured_cluster.addresses(MTLS), trusting)
    assert "requires a client certificate" in message and "--certificate" in message


def test_a_client_certificate_of_another_authority_is_not_accepted(secured_cluster: Cluster, trusting: Tls) -> None:
    tls = Tls(ca=trusting.ca, **shown(secured_cluster.certificates.stranger))
    assert "refuses ours" in refusal(secured_cluster.addresses(MTLS), tls)


def test_an_expired_certificate_says_since_when(secured_cluster: Cluster, trusting: Tls) -> None:
    assert "expired on Jan  1 00:00:00 2021 GMT" in refusal(secured_cluster.addresses(EXPIRED), trusting)


def test_a_certificate_of_another_host_says_for_which(secured_cluster: Cluster, trusting: Tls) -> None:
    message = refusal(secured_cluster.addresses(OTHER_HOST), trusting)
    assert "isn't for 127.0.0.1" in message and "it is for broker.example.org, *.example.org" in message


def test_a_server_name_is_expected_instead_of_the_host(secured_cluster: Cluster, trusting: Tls) -> None:
    for name in ("broker.example.org", "any.example.org"):
        tls = Tls(ca=trusting.ca, server_name=name)
        assert brokers(secured_cluster.addresses(OTHER_HOST), tls) == [1]
    assert "not for 127.0.0.1" not in refusal(
        secured_cluster.addresses(OTHER_HOST), Tls(ca=trusting.ca, server_name="a.b.example.org")
    )


def test_the_name_that_is_meant_counts_and_not_the_address_that_is_dialled(
    secured_cluster: Cluster, trusting: Tls
) -> None:
    dialled = secured_cluster.addresses(OTHER_HOST)
    rule = parse_resolve(f"broker.example.org:9093={dialled}")

    async def ask() -> Address:
        settings = Settings(parse_addresses("broker.example.org:9093"), tls=trusting, resolve=(rule,))
        async with connect(settings) as cluster:
            return (await cluster.call("ApiVersions", {})).address

    assert asyncio.run(ask()) == Address("broker.example.org", 9093)


def test_any_host_name_still_wants_a_trusted_authority(secured_cluster: Cluster, trusting: Tls) -> None:
    assert brokers(secured_cluster.addresses(OTHER_HOST), Tls(ca=trusting.ca, check_host_name=False)) == [1]
    message = refusal(secured_cluster.addresses(OTHER_HOST), Tls(check_host_name=False))
    assert "authority that isn't trusted" in message and "--ca" in message


def test_insecure_takes_any(secured_cluster: Cluster) -> None:
    for listener in (TLS, EXPIRED, OTHER_HOST):
        assert brokers(secured_cluster.addresses(listener), Tls(verify=False)) == [1]


def test_the_brokers_own_certificate_can_be_trusted_as_in_java(secured_cluster: Cluster) -> None:
    leaf = shown(secured_cluster.certificates.broker)["certificate"]
    assert brokers(secured_cluster.addresses(TLS), Tls(ca=leaf)) == [1]


def test_tls_to_a_plain_text_port(secured_cluster: Cluster, trusting: Tls) -> None:
    message = refusal(secured_cluster.addresses(PLAIN), trusting)
    assert "without TLS" in message and "--no-tls" in message


def test_plain_text_to_a_tls_port(secured_cluster: Cluster) -> None:
    message = refusal(secured_cluster.addresses(TLS), None)
    assert "TLS listener" in message and "--tls" in message


@contextmanager
def listener(serving: ssl.SSLContext) -> Iterator[Address]:
    """TLS as no broker speaks it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(30)

        def run() -> None:
            link, _ = server.accept()
            with link:
                link.settimeout(30)
                with suppress(OSError):
                    serving.wrap_socket(link, server_side=True).close()

        thread = threading.Thread(target=run)
        thread.start()
        yield Address("127.0.0.1", server.getsockname()[1])
        thread.join()


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_nothing_older_than_tls_1_2_is_spoken(certificates: Certificates) -> None:
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    old.load_cert_chain(certificates.broker)
    with listener(old) as address:
        message = refusal(str(address), Tls(ca=certificates.ca.read_bytes()))
        assert re.search("doesn't support TLS 1.2|handshake failed", message)


def encrypted(path: Path, password: str) -> Secret:
    key = load_pem_private_key(path.read_bytes(), None)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode()))
    return Secret(pem.decode())


def test_an_encrypted_key_needs_its_password(certificates: Certificates) -> None:
    certificate = shown(certificates.client)["certificate"]
    key = encrypted(certificates.client, "right")
    context(Tls(certificate=certificate, key=key, key_password=Secret("right")))
    with pytest.raises(InputError, match="password of our key is wrong"):
        context(Tls(certificate=certificate, key=key, key_password=Secret("topsecret")))
    # and OpenSSL does not ask at the terminal
    with pytest.raises(InputError, match="needs a password"):
        context(Tls(certificate=certificate, key=key))


def test_files_that_do_not_go_together_are_named(certificates: Certificates, tmp_path: Path) -> None:
    key, ca = tmp_path / "key.pem", tmp_path / "ca.pem"
    key.write_text(encrypted(certificates.client, "right").reveal())
    (tmp_path / "p").write_text("wrong")
    flags: dict[str, Any] = {"certificate": certificates.client, "key": key, "key_password_file": tmp_path / "p"}
    with pytest.raises(InputError, match=r"^/.*/key\.pem: the password of our key is wrong"):
        settings_from("a:1", flags)
    ca.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    with pytest.raises(InputError, match=r"^/.*/ca\.pem: the certificates to trust cannot be read"):
        settings_from("a:1", flags | {"ca": ca})
    config = tmp_path / "c"
    config.write_text(f"security.protocol=ssl\nssl.ca.location={certificates.ca}\nssl.key.password=wrong\n"
        f"ssl.certificate.location={certificates.client}\nssl.key.location={key}\n")  # fmt: skip
    with pytest.raises(InputError, match=r"/c: ssl\.key\.location: /.*/key\.pem: the password of our key is wrong"):
        settings_from("a:1", {"config": config})


def test_a_key_of_another_certificate_is_named(certificates: Certificates) -> None:
    certificate, key = shown(certificates.client)["certificate"], shown(certificates.stranger)["key"]
    with pytest.raises(InputError, match="doesn't belong to our certificate"):
        context(Tls(certificate=certificate, key=key))


@pytest.mark.parametrize("ca", [b"", b"garbage", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_what_is_no_certificate_to_trust_is_named(ca: bytes) -> None:
    with pytest.raises(InputError, match="certificates to trust"):
        context(Tls(ca=ca))


def test_key_material_stays_off_the_disk(certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "mkstemp", lambda **_: pytest.fail("a file was made"))
    before = os.listdir("/proc/self/fd")
    context.__wrapped__(Tls(**shown(certificates.client)))
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_where_there_is_no_file_in_memory_the_file_is_ours_alone_and_gone(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    modes: list[int] = []
    load = ssl.SSLContext.load_cert_chain

    def look(self: ssl.SSLContext, path: str, **more: Any) -> None:
        modes.append(os.stat(path).st_mode & 0o777)
        load(self, path, **more)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", look)
    context.__wrapped__(Tls(**shown(certificates.client)))
    assert modes == [0o600] and list(tmp_path.iterdir()) == []
