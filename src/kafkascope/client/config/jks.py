"""Parses Java key stores (JKS): trusted certificates and encrypted private keys.

Only Java defines the format: FEEDFEED, a counted list of entries, then SHA-1 over the password, a phrase and everything
before. A key is XORed with a SHA-1 chain that starts from the password and a salt of 20 bytes.
"""

import hashlib
import hmac
import struct
from dataclasses import dataclass, field

from kafkascope.client.settings import Secret
from kafkascope.errors import InputError

_PHRASE = b"Mighty Aphrodite"
_DIGEST_BYTES = 20
_KEY, _TRUSTED = 1, 2
# the algorithm's object id 1.3.6.1.4.1.42.2.17.1.1, known only to Java
_PROTECTION = bytes.fromhex("060a2b060104012a02110101")


@dataclass(frozen=True, slots=True)
class LockedKey:
    """A private key as stored, and its certificate chain in DER, the key's own first."""

    alias: str
    chain: list[bytes]
    locked: bytes = field(repr=False)

    def unlock(self, password: Secret | None, where: str) -> bytes:
        """PKCS8 in DER."""
        if password is None:
            raise InputError(f"{where}: its key '{self.alias}' needs a password")
        secret = password.reveal().encode("utf-16-be")
        body = self.locked
        if len(body) < 2 * _DIGEST_BYTES:
            raise InputError(f"{where}: its key '{self.alias}' is cut short")
        salt, hidden, check = body[:_DIGEST_BYTES], body[_DIGEST_BYTES:-_DIGEST_BYTES], body[-_DIGEST_BYTES:]
        stream, last = bytearray(), salt
        while len(stream) < len(hidden):
            last = hashlib.sha1(secret + last).digest()  # noqa: S324 - the format's own
            stream += last
        plain = bytes(a ^ b for a, b in zip(hidden, stream, strict=False))
        if not hmac.compare_digest(hashlib.sha1(secret + plain).digest(), check):  # noqa: S324
            raise InputError(f"{where}: the password of its key '{self.alias}' is wrong")
        return plain


@dataclass(frozen=True, slots=True)
class JksStore:
    """Trusted certificates in DER, and keys."""

    certificates: list[bytes]
    keys: list[LockedKey]


def read_jks(content: bytes, password: Secret | None, where: str) -> JksStore:
    """Without a password the digest isn't checked, as in Java: certificates aren't secret."""
    body, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    if password is not None:
        expected = hashlib.sha1(password.reveal().encode("utf-16-be") + _PHRASE + body).digest()  # noqa: S324
        if not hmac.compare_digest(expected, digest):
            raise InputError(f"{where}: the password is wrong, or the key store was modified")
    try:
        return _entries(_Reader(body, 4))
    except (struct.error, IndexError, UnicodeDecodeError):
        raise InputError(f"{where} isn't a complete JKS key store") from None


class _Reader:
    """Reads like Java's DataInputStream, and fails at the end of the bytes."""

    __slots__ = ("_body", "_position")

    def __init__(self, body: bytes, position: int) -> None:
        self._body = body
        self._position = position

    def number(self, form: str) -> int:
        value = struct.unpack_from(f">{form}", self._body, self._position)[0]
        self._position += struct.calcsize(f">{form}")
        return int(value)

    def take(self, count: int) -> bytes:
        if count < 0 or self._position + count > len(self._body):
            raise IndexError(count)
        self._position += count
        return self._body[self._position - count : self._position]

    def text(self) -> str:
        return self.take(self.number("H")).decode("utf-8", "replace")


def _entries(reader: _Reader) -> JksStore:
    version, count = reader.number("I"), reader.number("I")
    store = JksStore([], [])
    for _ in range(count):
        kind, alias = reader.number("I"), reader.text()
        reader.number("Q")  # creation time
        if kind == _TRUSTED:
            store.certificates.append(_certificate(reader, version))
        elif kind == _KEY:
            protected = reader.take(reader.number("I"))
            chain = [_certificate(reader, version) for _ in range(reader.number("I"))]
            store.keys.append(LockedKey(alias, chain, _octets(protected)))
        else:
            raise IndexError(kind)
    return store


def _certificate(reader: _Reader, version: int) -> bytes:
    if version == 2:
        reader.text()  # its type: X.509
    return reader.take(reader.number("I"))


def _octets(der: bytes) -> bytes:
    """The last element of EncryptedPrivateKeyInfo: SEQUENCE { SEQUENCE { algorithm, NULL }, OCTET STRING }."""
    _, inside, _ = _element(der, 0)
    _, algorithm, start = _element(inside, 0)
    if not algorithm.startswith(_PROTECTION):
        raise IndexError("another protection")
    _, octets, _ = _element(inside, start)
    return octets


def _element(der: bytes, position: int) -> tuple[int, bytes, int]:
    """(tag, content, where the next one starts)."""
    tag, length, start = der[position], der[position + 1], position + 2
    if length & 0x80:
        size = length & 0x7F
        length, start = int.from_bytes(der[start : start + size], "big"), start + size
    if start + length > len(der):
        raise IndexError(length)
    return tag, der[start : start + length], start + length
