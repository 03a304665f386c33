"""Implements SCRAM (RFC 5802) as Kafka does, without I/O: takes the server's messages and returns ours. Succeeds only
if the server proves that it knows the password too."""

import base64
import binascii
import hashlib
import hmac
import secrets
from typing import NamedTuple

from kafkascope.client.settings import Secret
from kafkascope.limits import MAX_SCRAM_ITERATIONS, MIN_SCRAM_ITERATIONS

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
# no channel binding and no other identity: Kafka has neither
_HEADER = "n,,"
_NONCE_BYTES = 24


class ScramError(Exception):
    """the server's signature is wrong; it doesn't know the password"""


class Started(NamedTuple):
    """State for the rest of the exchange."""

    nonce: str
    bare: str

    @property
    def message(self) -> bytes:
        return f"{_HEADER}{self.bare}".encode()


class Proven(NamedTuple):
    """Our proof, and the signature that the server must return."""

    message: bytes
    expected: bytes


def start(username: str, *, nonce: str | None = None, delegation_token: bool = False) -> Started:
    """`nonce` is only for tests."""
    nonce = nonce or base64.b64encode(secrets.token_bytes(_NONCE_BYTES)).decode()
    name = username.replace("=", "=3D").replace(",", "=2C")
    return Started(nonce, f"n={name},r={nonce}{',tokenauth=true' if delegation_token else ''}")


def prove(started: Started, server_first: bytes, password: Secret, digest: str) -> Proven:
    """`digest` is hashlib's name. Kafka uses the password's UTF-8 without SASLprep."""
    text = _text(server_first)
    fields = _fields(text)
    nonce = fields.get("r", "")
    if not nonce.startswith(started.nonce) or len(nonce) <= len(started.nonce):
        raise ScramError("the server returned the nonce of another login")
    iterations = fields.get("i", "")
    if not iterations.isdecimal() or not MIN_SCRAM_ITERATIONS <= int(iterations[:12]) <= MAX_SCRAM_ITERATIONS:
        raise ScramError(
            f"the server requests {iterations[:12] or 'no'} iterations;"
            f" allowed are {MIN_SCRAM_ITERATIONS} to {MAX_SCRAM_ITERATIONS}"
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
    """Raises unless the server's signature is right."""
    fields = _fields(_text(server_final))
    if not hmac.compare_digest(_base64(fields.get("v", ""), "signature"), proven.expected):
        raise ScramError("the server's signature is wrong; it doesn't know the password")


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise ScramError("the server's message isn't SCRAM") from None


def _fields(text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals or len(name) != 1 or name in fields:
            raise ScramError("the server's message isn't SCRAM")
        fields[name] = value
    if "m" in fields:
        raise ScramError("the server requests an extension of SCRAM that Kafka doesn't have")
    if "e" in fields:
        raise ScramError(f"the server reports {fields['e'][:60]}")
    return fields


def _base64(text: str, what: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ScramError(f"the server's {what} isn't base64") from None
