"""A connection and who we are in, a session logged in out: SaslHandshake, then the mechanism's messages in
SaslAuthenticate, or bare for brokers before 1.0. Every refusal is one line that holds no secret."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from kafkascope.client.auth import scram
from kafkascope.client.settings import Address, Sasl, Secret, told_by_others
from kafkascope.errors import ReachError

SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
OAUTHBEARER = "OAUTHBEARER"
_UNSUPPORTED_MECHANISM, _ILLEGAL_STATE, _AUTHENTICATION_FAILED = 33, 34, 58
# What people meet and we have not, by the name that they know.
MISSING = {
    "GSSAPI": "GSSAPI (Kerberos)",
    "AWS_MSK_IAM": "AWS_MSK_IAM (the login of Amazon MSK)",
    "DIGEST-MD5": "DIGEST-MD5",
}
_OURS = ("PLAIN", *scram.HASHES, OAUTHBEARER)
# RFC 7628: after an error the client says one control character and the server ends it
_GIVE_UP = b"\x01"


class Answered(Protocol):
    @property
    def value(self) -> dict[str, Any]: ...


class Link(Protocol):
    """What a login needs of a connection. `token` is one bare SASL message, as after SaslHandshake v0."""

    @property
    def address(self) -> Address: ...
    @property
    def versions(self) -> Mapping[int, tuple[int, int]]: ...
    async def call(self, api: str, version: int, value: Mapping[str, Any]) -> Answered: ...
    async def token(self, data: bytes) -> bytes: ...


async def authenticate(
    connection: Link, sasl: Sasl, waits_for: Callable[[str | None], None] = lambda _: None
) -> int | None:
    """How long the session lasts in milliseconds, None where the broker sets no end (KIP-368). Whoever calls sets the
    time limit; `waits_for` is told when a token endpoint is waited for, and with None when it no longer is."""
    bare = SASL_AUTHENTICATE not in connection.versions
    await _handshake(connection, sasl.mechanism, 0 if bare else 1)
    session = _Session(connection, sasl, waits_for, bare=bare)
    await session.log_in()
    return session.lifetime_ms or None


async def _handshake(connection: Link, mechanism: str, version: int) -> None:
    answer = (await connection.call("SaslHandshake", version, {"mechanism": mechanism})).value
    code, offered = answer["errorCode"], answer["mechanisms"]
    offers = f"the broker offers {told_by_others(', '.join(offered)) or 'none'}"
    if mechanism not in _OURS:
        named = MISSING.get(mechanism, mechanism)
        unknown = "" if mechanism in MISSING else f"; there are {', '.join(_OURS)}"
        raise ReachError(f"{connection.address}: kafkascope has no {named}{unknown}; {offers}")
    if code == _UNSUPPORTED_MECHANISM or (code == 0 and mechanism not in offered):
        raise ReachError(f"{connection.address}: the broker has no {mechanism} here; {offers}")
    if code == _ILLEGAL_STATE:
        raise ReachError(f"{connection.address}: this listener takes no SASL login; leave --sasl-mechanism out")
    if code:
        raise ReachError(f"{connection.address}: SaslHandshake is refused with {_name(code)} ({code})")


class _Session:
    """One login under way."""

    __slots__ = ("_bare", "_connection", "_sasl", "_secrets", "_version", "_waits_for", "lifetime_ms")

    def __init__(self, connection: Link, sasl: Sasl, waits_for: Callable[[str | None], None], *, bare: bool) -> None:
        self._waits_for = waits_for
        self._connection = connection
        self._sasl = sasl
        self._bare = bare
        self._version = min(2, connection.versions.get(SASL_AUTHENTICATE, (0, 0))[1])
        self._secrets = [sasl.password, sasl.token, sasl.token_client_secret]
        self.lifetime_ms = 0

    async def log_in(self) -> None:
        if self._sasl.mechanism == "PLAIN":
            await self._plain()
        elif self._sasl.mechanism == OAUTHBEARER:
            await self._oauth()
        else:
            await self._scram()

    async def _plain(self) -> None:
        """RFC 4616: no other identity, name, password."""
        await self._say(f"\0{self._sasl.username}\0{(self._sasl.password or Secret('')).reveal()}".encode())

    async def _scram(self) -> None:
        try:
            started = scram.start(self._sasl.username or "", delegation_token=self._sasl.delegation_token)
            first = await self._say(started.message)
            password = self._sasl.password or Secret("")
            proven = scram.prove(started, first, password, scram.HASHES[self._sasl.mechanism])
            scram.finish(proven, await self._say(proven.message))
        except scram.ScramError as error:
            raise self._failed(str(error)) from None

    async def _oauth(self) -> None:
        """RFC 7628, with Kafka's extensions (KIP-342)."""
        from kafkascope.client.auth.oauth import endpoint_of, token_of

        self._waits_for(endpoint_of(self._sasl))
        token = await token_of(self._sasl)
        self._waits_for(None)
        self._secrets.append(token)
        extensions = "".join(f"{name}={value}\x01" for name, value in self._sasl.extensions)
        answer = await self._say(f"n,,\x01auth=Bearer {token.reveal()}\x01{extensions}\x01".encode())
        if answer:
            status = _status(answer)
            try:
                await self._say(_GIVE_UP)
            except ReachError:
                # what the broker says behind it is only that authentication failed
                if not status:
                    raise
            raise self._failed(f"the token is refused: {status or 'no reason given'}")

    async def _say(self, message: bytes) -> bytes:
        if self._bare:
            return await self._connection.token(message)
        answer = (await self._connection.call("SaslAuthenticate", self._version, {"authBytes": message})).value
        code = answer["errorCode"]
        if code == _AUTHENTICATION_FAILED:
            raise self._failed(answer["errorMessage"] or "the broker gives no reason")
        if code:
            told = answer["errorMessage"]
            raise self._failed(f"{_name(code)} ({code}){f': {told}' if told else ''}")
        self.lifetime_ms = max(0, answer.get("sessionLifetimeMs", 0))
        data: bytes = answer["authBytes"]
        return data

    def _failed(self, told: str) -> ReachError:
        """What a broker says is shown, but for a secret in it."""
        told = told_by_others(told, self._secrets)
        who = f" as {self._sasl.username}" if self._sasl.username else ""
        return ReachError(f"{self._connection.address}: login{who} by {self._sasl.mechanism} failed: {told}")


def _status(answer: bytes) -> str:
    try:
        said = json.loads(answer)
    except (ValueError, RecursionError):
        return ""
    return str(said.get("status", ""))[:100] if isinstance(said, dict) else ""


def _name(code: int) -> str:
    from kafkascope.schema.errors.error_codes import error_name

    return error_name(code)
