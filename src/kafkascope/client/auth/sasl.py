"""Logs a connection in: SaslHandshake, then the mechanism's messages in SaslAuthenticate, or bare for brokers before
1.0. Every refusal is one line without secrets."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from kafkascope.client.auth.mechanisms import MISSING, Mechanism, mechanism_named, mechanism_names
from kafkascope.client.settings import Address, Sasl, Secret, sanitize
from kafkascope.errors import ReachError

SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
_UNSUPPORTED_MECHANISM, _ILLEGAL_STATE, _AUTHENTICATION_FAILED = 33, 34, 58


class Answered(Protocol):
    @property
    def value(self) -> dict[str, Any]: ...


class Link(Protocol):
    """The connection as a login uses it. `token` is one bare SASL message, as after SaslHandshake v0."""

    @property
    def address(self) -> Address: ...
    @property
    def versions(self) -> Mapping[int, tuple[int, int]]: ...
    async def call(self, api: str, version: int, value: Mapping[str, Any]) -> Answered: ...
    async def token(self, data: bytes) -> bytes: ...


async def authenticate(
    connection: Link, sasl: Sasl, waits_for: Callable[[str | None], None] = lambda _: None
) -> int | None:
    """Returns the lifetime of the session in milliseconds, None if the broker sets none (KIP-368). The caller sets the
    time limit. `waits_for` is called with a token endpoint before waiting for it, and with None afterwards."""
    bare = SASL_AUTHENTICATE not in connection.versions
    mechanism = await _handshake(connection, sasl.mechanism, 0 if bare else 1)
    login = _Login(connection, sasl, waits_for, bare=bare)
    await mechanism.load()(login)
    return login.lifetime_ms or None


async def _handshake(connection: Link, name: str, version: int) -> Mechanism:
    answer = (await connection.call("SaslHandshake", version, {"mechanism": name})).value
    code, offered = answer["errorCode"], answer["mechanisms"]
    offers = f"the broker offers {sanitize(', '.join(offered)) or 'none'}"
    mechanism = mechanism_named(name)
    if mechanism is None:
        unknown = "" if name in MISSING else f"; it has {', '.join(mechanism_names())}"
        raise ReachError(f"{connection.address}: kafkascope doesn't have {MISSING.get(name, name)}{unknown}; {offers}")
    if code == _UNSUPPORTED_MECHANISM or (code == 0 and name not in offered):
        raise ReachError(f"{connection.address}: the broker doesn't offer {name} here; {offers}")
    if code == _ILLEGAL_STATE:
        raise ReachError(f"{connection.address}: this listener takes no SASL login; leave out --sasl-mechanism")
    if code:
        raise ReachError(f"{connection.address}: the broker refuses SaslHandshake with {_name(code)} ({code})")
    return mechanism


class _Login:
    """A login in progress."""

    __slots__ = ("_bare", "_connection", "_secrets", "_version", "lifetime_ms", "sasl", "waits_for")

    def __init__(self, connection: Link, sasl: Sasl, waits_for: Callable[[str | None], None], *, bare: bool) -> None:
        self.waits_for = waits_for
        self._connection = connection
        self.sasl = sasl
        self._bare = bare
        self._version = min(2, connection.versions.get(SASL_AUTHENTICATE, (0, 0))[1])
        self._secrets = [sasl.password, sasl.token, sasl.token_client_secret]
        self.lifetime_ms = 0

    async def send(self, message: bytes) -> bytes:
        if self._bare:
            return await self._connection.token(message)
        answer = (await self._connection.call("SaslAuthenticate", self._version, {"authBytes": message})).value
        code = answer["errorCode"]
        if code == _AUTHENTICATION_FAILED:
            raise self.failed(answer["errorMessage"] or "the broker gives no reason")
        if code:
            reason = answer["errorMessage"]
            raise self.failed(f"{_name(code)} ({code}){f': {reason}' if reason else ''}")
        self.lifetime_ms = max(0, answer.get("sessionLifetimeMs", 0))
        data: bytes = answer["authBytes"]
        return data

    def hide(self, secret: Secret) -> None:
        self._secrets.append(secret)

    def failed(self, reason: str) -> ReachError:
        """The broker's message is shown, without secrets in it."""
        shown = sanitize(reason, self._secrets)
        who = f" as {self.sasl.username}" if self.sasl.username else ""
        return ReachError(f"{self._connection.address}: login{who} with {self.sasl.mechanism} failed: {shown}")


def _name(code: int) -> str:
    from kafkascope.schema.errors.error_codes import error_name

    return error_name(code)
