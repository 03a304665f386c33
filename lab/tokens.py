"""Runs an OAuth token endpoint on loopback: client credentials over HTTP or HTTPS, signed tokens, and the file of
keys by which brokers check them."""

import base64
import json
import ssl
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from lab.settings import HOST

AUDIENCE = "kafka-lab"
ISSUER = "lab"
_KEY_ID = "lab"
# longer than any test takes
_TOKEN_SECONDS = 3600.0


class Tokens:
    """A signing key. `jwks` is the file that brokers read."""

    def __init__(self, folder: Path) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        numbers = self._key.public_key().public_numbers()
        modulus, exponent = (_number(value) for value in (numbers.n, numbers.e))
        key = {"kty": "RSA", "kid": _KEY_ID, "use": "sig", "alg": "RS256", "n": modulus, "e": exponent}
        self.jwks = folder / "jwks.json"
        self.jwks.write_text(json.dumps({"keys": [key]}))

    def token(self, subject: str, seconds: float = _TOKEN_SECONDS, **claims: Any) -> str:
        """Valid from now on; a negative time makes one that is over."""
        now = int(time.time())
        body = {"iss": ISSUER, "aud": AUDIENCE, "sub": subject, "iat": now, "exp": int(now + seconds), **claims}
        head = {"alg": "RS256", "typ": "JWT", "kid": _KEY_ID}
        signed = ".".join(_base64(json.dumps(part).encode()) for part in (head, body))
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_base64(signature)}"


class TokenServer:
    """The endpoint while the `with` block lasts. `certificate` (key and chain, PEM) makes it HTTPS. `asked` are the
    forms that came."""

    def __init__(self, tokens: Tokens, users: Mapping[str, str], certificate: Path | None = None) -> None:
        self.asked: list[dict[str, list[str]]] = []
        handler = type("Handler", (_Handler,), {"tokens": tokens, "users": dict(users), "asked": self.asked})
        self._server = ThreadingHTTPServer((HOST, 0), handler)
        self._server.daemon_threads = True
        self._scheme = "http"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
            self._scheme = "https"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def url(self) -> str:
        return f"{self._scheme}://{HOST}:{self._server.server_port}/token"

    def __enter__(self) -> "TokenServer":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    """RFC 6749, 4.4: the client's name and secret in the Authorization header."""

    tokens: Tokens
    users: Mapping[str, str]
    asked: list[dict[str, list[str]]]

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode())
        self.asked.append(form)
        scheme, _, encoded = self.headers.get("Authorization", "").partition(" ")
        name, _, secret = base64.b64decode(encoded).decode().partition(":")
        if scheme != "Basic" or self.users.get(name) != secret:
            self._answer(401, {"error": "invalid_client", "error_description": f"{name}: wrong secret"})
        elif form.get("grant_type") != ["client_credentials"]:
            self._answer(400, {"error": "unsupported_grant_type"})
        else:
            answer = {
                "access_token": self.tokens.token(name),
                "token_type": "Bearer",
                "expires_in": int(_TOKEN_SECONDS),
            }
            self._answer(200, answer)

    def _answer(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the base has it
        """Says nothing."""


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _number(value: int) -> str:
    return _base64(value.to_bytes((value.bit_length() + 7) // 8, "big"))
