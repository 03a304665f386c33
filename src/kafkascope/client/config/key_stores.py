"""Reads certificates and private keys from PEM, JKS or PKCS12 files and returns them as PEM.

JKS is parsed here: its format is small and the only library for it is no longer maintained. PKCS12 needs
`cryptography`."""

import base64
import re
from dataclasses import dataclass
from pathlib import Path

from kafkascope.client.settings import Secret
from kafkascope.client.small_file import read_small
from kafkascope.errors import InputError
from kafkascope.extras import need_extras
from kafkascope.limits import MAX_STORE_BYTES

JKS, JCEKS = b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce"
# PKCS12 is DER: a sequence, with two length bytes or of unknown length
_PKCS12 = (b"\x30\x82", b"\x30\x80", b"\x30\x81", b"\x30\x83")
_BLOCK = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----.*?-----END \1-----", re.DOTALL)
_CERTIFICATES = (b"CERTIFICATE", b"X509 CERTIFICATE", b"TRUSTED CERTIFICATE")


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of one side of mTLS: its certificate with the chain, and the key, both in PEM."""

    certificate: bytes
    key: Secret
    key_password: Secret | None = None


def read_trust(path: Path, password: Secret | None) -> bytes:
    """The certificates of a trust store."""
    content = _read(path)
    if content.startswith(JKS):
        from kafkascope.client.config.jks import read_jks

        store = read_jks(content, password, str(path))
        # Java also trusts the certificate of a key, but not the rest of its chain
        certificates = [*store.certificates, *(certificate for entry in store.keys for certificate in entry.chain[:1])]
    elif content.startswith(_PKCS12):
        _, certificates = _pkcs12(content, password, path)
    else:
        certificates = []
        pem = certificates_of(content)
        if pem:
            return pem
    if not certificates:
        raise _nothing(path, content, "certificate to trust")
    return b"".join(_pem("CERTIFICATE", certificate) for certificate in certificates)


def read_identity(path: Path, key: Path | None, store_password: Secret | None, key_password: Secret | None) -> Identity:
    """Certificate and key from one store, one PEM file, or two PEM files."""
    content = _read(path)
    if content.startswith(JKS):
        from kafkascope.client.config.jks import read_jks

        store = read_jks(content, store_password, str(path))
        if not store.keys:
            raise InputError(f"{path} holds no private key; is this the trust store?")
        entry = store.keys[0]
        chain, der = entry.chain, entry.unlock(key_password or store_password, str(path))
    elif content.startswith(_PKCS12):
        private_key, chain = _pkcs12(content, store_password, path)
        if private_key is None:
            raise InputError(f"{path} holds no private key; is this the trust store?")
        der = private_key
    else:
        certificate = certificates_of(content)
        if not certificate:
            raise _nothing(path, content, "certificate")
        keys = _keys(content if key is None else _read(key))
        if not keys:
            raise InputError(f"{key or path} has no private key in PEM; give its file with --key FILE")
        return Identity(certificate, Secret(keys.decode()), key_password)
    pem = _pem("PRIVATE KEY", der).decode()
    return Identity(b"".join(_pem("CERTIFICATE", certificate) for certificate in chain), Secret(pem))


def certificates_of(content: bytes) -> bytes:
    """The certificates among the PEM blocks of a text."""
    return b"".join(match[0] + b"\n" for match in _BLOCK.finditer(content) if match[1] in _CERTIFICATES)


def _keys(content: bytes) -> bytes:
    blocks = [match[0] + b"\n" for match in _BLOCK.finditer(content) if match[1].endswith(b"PRIVATE KEY")]
    return blocks[0] if blocks else b""


def _pkcs12(content: bytes, password: Secret | None, path: Path) -> tuple[bytes | None, list[bytes]]:
    """(private key or None, certificates with the key's own first), all in DER."""
    need_extras(f"{path} is PKCS12, which", "live")
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12

    try:
        store = pkcs12.load_pkcs12(content, password.reveal().encode() if password else None)
    except ValueError:
        problem = "the password is wrong, or this isn't a PKCS12 file" if password else "it needs a password"
        raise InputError(f"{path}: {problem}") from None
    except UnsupportedAlgorithm:
        raise InputError(f"{path}: its encryption isn't supported; convert it with keytool -importkeystore") from None
    entries = [*([store.cert] if store.cert else []), *store.additional_certs]
    certificates = [entry.certificate.public_bytes(Encoding.DER) for entry in entries]
    if store.key is None:
        return None, certificates
    return store.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()), certificates


def _pem(label: str, der: bytes) -> bytes:
    body = base64.encodebytes(der).replace(b"\n", b"")
    lines = [body[start : start + 64] for start in range(0, len(body), 64)]
    return b"\n".join([f"-----BEGIN {label}-----".encode(), *lines, f"-----END {label}-----".encode(), b""])


def _read(path: Path) -> bytes:
    content = read_small(path, MAX_STORE_BYTES, "is it a key store?")
    if content.startswith(JCEKS):
        raise InputError(f"{path} is a JCEKS store; convert it: keytool -importkeystore -deststoretype PKCS12")
    return content


def _nothing(path: Path, content: bytes, missing: str) -> InputError:
    if not content.strip():
        return InputError(f"{path} is empty; it should have a {missing}")
    return InputError(f"{path} has no {missing}; it must be PEM, PKCS12 or JKS with one")
