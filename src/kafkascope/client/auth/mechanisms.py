"""Lists the SASL mechanisms of kafkascope and what each needs. To add one, write its exchange and a line here.

An exchange is imported on the first login with it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Protocol

from kafkascope.client.settings import Sasl, Secret
from kafkascope.errors import ReachError

# What a mechanism needs: a user name and password, or a token or a place to get one.
PASSWORD, TOKEN = "password", "token"


class Login(Protocol):
    """A login in progress, as its mechanism sees it."""

    @property
    def sasl(self) -> Sasl: ...

    async def send(self, message: bytes) -> bytes:
        """Sends one message of the mechanism and returns the broker's. Raises `ReachError` if it's refused."""
        ...

    def failed(self, reason: str) -> ReachError:
        """The error with the reason why the login failed."""
        ...

    def hide(self, secret: Secret) -> None:
        """Registers a secret that errors must not repeat."""
        ...

    def waits_for(self, endpoint: str | None) -> None:
        """Reports that the login waits for an endpoint, or with None that it no longer does."""
        ...


@dataclass(frozen=True, slots=True)
class Mechanism:
    """`name` is its name on the wire, `java_module` its class in Java's sasl.jaas.config."""

    name: str
    needs: str
    java_module: str
    exchange: str

    def load(self) -> Callable[[Login], Awaitable[None]]:
        exchange: Callable[[Login], Awaitable[None]] = resolve_name(self.exchange)
        return exchange


_HERE = "kafkascope.client.auth"

MECHANISMS = (
    Mechanism("PLAIN", PASSWORD, "PlainLoginModule", f"{_HERE}.plain:log_in"),
    Mechanism("SCRAM-SHA-256", PASSWORD, "ScramLoginModule", f"{_HERE}.scram_exchange:log_in"),
    Mechanism("SCRAM-SHA-512", PASSWORD, "ScramLoginModule", f"{_HERE}.scram_exchange:log_in"),
    Mechanism("OAUTHBEARER", TOKEN, "OAuthBearerLoginModule", f"{_HERE}.oauthbearer:log_in"),
)
# Mechanisms that users meet and kafkascope lacks, by their common name.
MISSING = {
    "GSSAPI": "GSSAPI (Kerberos)",
    "AWS_MSK_IAM": "AWS_MSK_IAM (the login of Amazon MSK)",
    "DIGEST-MD5": "DIGEST-MD5",
}


def mechanism_named(name: str) -> Mechanism | None:
    return next((mechanism for mechanism in MECHANISMS if mechanism.name == name), None)


def mechanism_names() -> list[str]:
    return [mechanism.name for mechanism in MECHANISMS]


def by_token() -> Mechanism:
    """The mechanism for settings with a token and no mechanism."""
    return next(mechanism for mechanism in MECHANISMS if mechanism.needs == TOKEN)
