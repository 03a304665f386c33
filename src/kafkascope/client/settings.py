"""Defines the settings of a connection: addresses, TLS, SASL, timeouts. Only `reveal` shows a secret."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from kafkascope.errors import UsageError
from kafkascope.schema.names import clip

_DEFAULT_PORT = 9092
# As users paste them: Java allows `SASL_SSL://host:port` in bootstrap.servers.
_ADDRESS = re.compile(
    r"(?:(?P<scheme>[A-Za-z_]\w*)://)?(?:\[(?P<six>[^\]]*)\]|(?P<host>[^:\[\]/]*))(?::(?P<port>[^:]*))?"
)


class Secret:
    """A password, a token or a private key. It always prints as `***`; `reveal` returns it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "***"

    __str__ = __repr__

    def __format__(self, _: str) -> str:
        return "***"

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret can't be serialized")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a node listens. `str` returns `host:port`, or `[::1]:9092` for IPv6."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Tls:
    """Certificates and the key are in PEM. Without `ca` the system's authorities are trusted; `certificate` and `key`
    are the client's (mTLS)."""

    ca: bytes | None = None
    certificate: bytes | None = None
    key: Secret | None = None
    key_password: Secret | None = None
    verify: bool = True
    check_host_name: bool = True
    server_name: str | None = None


@dataclass(frozen=True, slots=True)
class Sasl:
    """`mechanism` is its name on the wire. A token comes from `token`, from `token_file` (reread for each
    authentication, since files of Kubernetes change), or from `token_url` by client credentials."""

    mechanism: str
    username: str | None = None
    password: Secret | None = None
    # SCRAM with a delegation token's id and HMAC as name and password
    delegation_token: bool = False
    token: Secret | None = None
    token_file: Path | None = None
    # its query may contain a secret
    token_url: str | None = field(default=None, repr=False)
    token_client_id: str | None = None
    token_client_secret: Secret | None = None
    token_scope: str | None = None
    token_ca: bytes | None = None
    extensions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that the client needs before it connects; times are seconds."""

    bootstrap: tuple[Address, ...]
    # the addresses are those of controllers (KIP-919)
    controllers: bool = False
    tls: Tls | None = None
    sasl: Sasl | None = None
    client_id: str = "kafkascope"
    # for one call, including retries
    timeout: float = 10.0
    connect_timeout: float = 5.0
    # addresses to connect to instead of those that a broker or the user names
    resolve: tuple[tuple[Address, Address], ...] = ()


def parse_address(text: str, default_port: int = _DEFAULT_PORT) -> Address:
    """`host:9092`, `host`, `[::1]:9092`, `SSL://host:9093`."""
    if "@" in text:
        # the text before it may be a password
        raise UsageError(
            "an address has no user, but this one has an @; write HOST:PORT, and log in with --sasl-mechanism"
        )
    match = _ADDRESS.fullmatch(text.strip())
    host = match and (match["six"] or match["host"])
    if match is None or not host or any(character.isspace() for character in host):
        raise UsageError(f"'{clip(text)}' isn't an address; write HOST:PORT, or [::1]:PORT for IPv6")
    if (match["scheme"] or "").lower() in ("http", "https"):
        raise UsageError(f"'{clip(text)}' is a web URL, and Kafka doesn't speak HTTP; write HOST:PORT")
    if match["port"] is None:
        return Address(host, default_port)
    port = int(match["port"]) if re.fullmatch(r"[0-9]{1,5}", match["port"]) else 0
    if not 0 < port < 65536:
        raise UsageError(f"'{clip(match['port'])}' isn't a port (in '{clip(text)}'); ports are 1 to 65535")
    return Address(host, port)


def parse_addresses(text: str, origin: str | None = None) -> tuple[Address, ...]:
    """Parses several, separated by commas; each once. Text from an `origin` is never shown, only the origin: a line
    that ran into the next one may contain a password."""
    addresses: dict[Address, None] = {}
    for number, part in enumerate((part for part in text.split(",") if part.strip()), 1):
        try:
            addresses[parse_address(part)] = None
        except UsageError:
            if origin is None:
                raise
            raise UsageError(
                f"{origin}: address {number} isn't valid; write HOST:PORT, or [::1]:PORT for IPv6"
            ) from None
    if not addresses:
        raise UsageError(f"{origin + ': ' if origin else ''}no address is given; write HOST:PORT")
    return tuple(addresses)


def parse_resolve(text: str) -> tuple[Address, Address]:
    """Parses `broker-0.kafka:9092=127.0.0.1:19092`: an address, and the address to connect to instead; without a port
    the port stays the same."""
    named, equals, dialled = text.partition("=")
    if not equals:
        raise UsageError(f"'{clip(text)}' isn't valid; write HOST:PORT=ADDRESS or HOST:PORT=ADDRESS:PORT")
    address = parse_address(named)
    return address, parse_address(dialled, address.port)


def sanitize(text: str, secrets: Iterable[Secret | None] = (), most: int = 300) -> str:
    """Makes the message of a broker or an endpoint fit for one line of an error: without secrets in it, and without
    characters that control a terminal."""
    for secret in secrets:
        if secret:
            text = text.replace(secret.reveal(), "***")
    shown = "".join(character if character.isprintable() else " " for character in text[: 4 * most])
    shown = " ".join(shown.split())
    return shown if len(shown) <= most else f"{shown[:most]}…"
