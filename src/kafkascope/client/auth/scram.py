"""Speaks SCRAM (RFC 5802) as Kafka does, without I/O: takes the server's messages and returns ours. It ends only when
the server has proven that it knows the password too."""

import base64
import binascii
import hashlib
import hmac
import secrets
from typing import NamedTuple

from kafkascope.client.settings import Secret
from kafkascope.limits import MAX_SCRAM_ITERATIONS, MIN_SCRAM_ITERATIONS

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
# no channel binding, no other identity: Kafka knows neither
_HEADER = "n,,"
_NONCE_BYTES = 24


class ScramError(Exception):
    """the server's signature is wrong; it does not know the password"""


class Started(NamedTuple):
    """What the rest of the exchange builds on."""

    nonce: str
    bare: str

    @property
    def message(self) -> bytes:
        return f"{_HEADER}{self.bare}".encode()


class Proven(NamedTuple):
    """Our proof, and the server's signature that must answer it."""

    message: bytes
    expected: bytes


def start(username: str, *, nonce: str | None = None, delegation_token: bool = False) -> Started:
    """`nonce` for tests alone."""
    nonce = nonce or base64.b64encode(secrets.token_bytes(_NONCE_BYTES)).decode()
    name = username.replace("=", "=3D").replace(",", "=2C")
    return Started(nonce, f"n={name},r={nonce}{',tokenauth=true' if delegation_token else ''}")


def prove(started: Started, server_first: bytes, password: Secret, digest: str) -> Proven:
    """`digest` is hashlib's name. Kafka takes the password's UTF-8 as it is, without SASLprep."""
    text = _text(server_first)
    fields = _fields(text)
    nonce = fields.get("r", "")
    if not nonce.startswith(started.nonce) or len(nonce) <= len(started.nonce):
        raise ScramError("the server answered another login's nonce")
    iterations = fields.get("i", "")
    if not iterations.isdecimal() or not MIN_SCRAM_ITERATIONS <= int(iterations[:12]) <= MAX_SCRAM_ITERATIONS:
        raise ScramError(
            f"the server asks for {iterations[:12] or 'no'} iterations;"
            f" {MIN_SCRAM_ITERATIONS} to {MAX_SCRAM_ITERATIONS} are taken"
        )
    salt = _base64(fields.get("s", ""), "salt")
    salted = hashlib.pbkdf2_hmac(digest, password.reveal().encode(), salt, int(iterations))
    client_key = hmac.digest(salted, b"Client Key", digest)
    binding = base64.b64encode(_HEADER.encode()).decode()
    final = f"c={binding},r={nonce}"
    signed = f"{started.bare},{text},{final}".encode()
    signature = hmac.digest(hashlib.new(digest, client_key).digest(), signed, digest)
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
    server_key = hmac.digest(salted, b"Server Key", digest)
    return Proven(f"{final},p={proof}".encode(), hmac.digest(server_key, signed, digest))


def finish(proven: Proven, server_final: bytes) -> None:
    """Returns when the server's signature is right."""
    fields = _fields(_text(server_final))
    if not hmac.compare_digest(_base64(fields.get("v", ""), "signature"), proven.expected):
        raise ScramError("the server's signature is wrong; it does not know the password")


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise ScramError("the server's message is no SCRAM") from None


def _fields(text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals or len(name) != 1 or name in fields:
            raise ScramError("the server's message is no SCRAM")
        fields[name] = value
    if "m" in fields:
        raise ScramError("the server asks for an extension of SCRAM that there is not in Kafka")
    if "e" in fields:
        raise ScramError(f"the server says {fields['e'][:60]}")
    return fields


def _base64(text: str, what: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ScramError(f"the server's {what} is no base64") from None
