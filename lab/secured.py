"""Configures brokers for every kind of login, and ACLs of users with half the rights: what `Cluster(secured=True)`
adds to a plain one."""

from collections.abc import Mapping
from typing import Any

from lab.certificates import CLIENT_PRINCIPAL, Certificates
from lab.settings import SASL, TLS, USERS, Place
from lab.tokens import AUDIENCE, ISSUER, Tokens
from lab.wire import call

# (listener, security protocol)
MTLS = ("MTLS", "SSL")
EXPIRED = ("EXPIRED", "SSL")
OTHER_HOST = ("OTHER_HOST", "SSL")
SASL_TLS = ("SASL_TLS", "SASL_SSL")
# sessions so short that a client has to log in again while one looks on
SHORT = ("SHORT", "SASL_PLAINTEXT")
SHORT_SESSION_MS = 3000
LISTENERS = dict((TLS, SASL, MTLS, EXPIRED, OTHER_HOST, SASL_TLS, SHORT))
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")

# alice may do everything, bob describes one topic and some groups, carol the cluster alone
_SUPER_USERS = ("User:ANONYMOUS", "User:alice", CLIENT_PRINCIPAL)
SECURED_USERS = {**USERS, "carol": "carol-secret"}
BOBS_TOPIC, _BOBS_GROUPS = "orders", "bob-"

# numbers of Kafka's ResourceType, PatternType, AclOperation, AclPermissionType
_TOPIC, _GROUP, _CLUSTER = 2, 3, 4
_LITERAL, _PREFIXED = 3, 4
_DESCRIBE, _ALLOW = 8, 3
_ACLS = (
    (_TOPIC, BOBS_TOPIC, _LITERAL, "User:bob"),
    (_GROUP, _BOBS_GROUPS, _PREFIXED, "User:bob"),
    (_CLUSTER, "kafka-cluster", _LITERAL, "User:carol"),
)

_MODULES = "org.apache.kafka.common.security"
_LOGINS = {
    "SCRAM-SHA-256": f"{_MODULES}.scram.ScramLoginModule required;",
    "SCRAM-SHA-512": f"{_MODULES}.scram.ScramLoginModule required;",
    "OAUTHBEARER": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required;",
}


def secured_properties(place: Place, certificates: Certificates, tokens: Tokens) -> dict[str, str]:
    lines = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": ";".join(_SUPER_USERS),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.broker),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.ca),
        f"{_prefix(MTLS)}.ssl.client.auth": "required",
        f"{_prefix(EXPIRED)}.ssl.keystore.type": "PEM",
        f"{_prefix(EXPIRED)}.ssl.keystore.location": str(certificates.expired),
        f"{_prefix(OTHER_HOST)}.ssl.keystore.type": "PEM",
        f"{_prefix(OTHER_HOST)}.ssl.keystore.location": str(certificates.other_host),
        "sasl.oauthbearer.jwks.endpoint.url": tokens.jwks.as_uri(),
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": ISSUER,
        f"{_prefix(SHORT)}.plain.connections.max.reauth.ms": str(SHORT_SESSION_MS),
    }
    for listener, mechanisms in ((SASL, MECHANISMS), (SASL_TLS, MECHANISMS), (SHORT, ("PLAIN",))):
        if listener[0] in place.ports:
            lines |= _logins(_prefix(listener), mechanisms)
    return lines


def jvm_flags(tokens: Tokens) -> tuple[str, ...]:
    """4.x reads no keys of tokens from where it is not allowed to by name."""
    return (f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={tokens.jwks.as_uri()}",)


def scram_arguments() -> list[str]:
    """For `StorageTool format`."""
    arguments: list[str] = []
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        for name, password in SECURED_USERS.items():
            arguments += ["--add-scram", f"{mechanism}=[name={name},password={password}]"]
    return arguments


def add_acls(address: str) -> None:
    creations: list[dict[str, Any]] = [
        {
            "resourceType": kind,
            "resourceName": name,
            "resourcePatternType": pattern,
            "principal": principal,
            "host": "*",
            "operation": _DESCRIBE,
            "permissionType": _ALLOW,
        }
        for kind, name, pattern, principal in _ACLS
    ]
    answer = call(address, "CreateAcls", 3, {"creations": creations})
    refused = [row for row in answer["results"] if row["errorCode"]]
    if refused:
        raise RuntimeError(f"ACLs were refused: {refused}")


def _prefix(listener: tuple[str, str]) -> str:
    return f"listener.name.{listener[0].lower()}"


def _logins(prefix: str, mechanisms: tuple[str, ...]) -> Mapping[str, str]:
    users = " ".join(f'user_{name}="{password}"' for name, password in SECURED_USERS.items())
    logins = {"PLAIN": f"{_MODULES}.plain.PlainLoginModule required {users};", **_LOGINS}
    lines = {f"{prefix}.sasl.enabled.mechanisms": ",".join(mechanisms)}
    for mechanism in mechanisms:
        lines[f"{prefix}.{mechanism.lower()}.sasl.jaas.config"] = logins[mechanism]
    if "OAUTHBEARER" in mechanisms:
        handler = f"{_MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler"
        lines[f"{prefix}.oauthbearer.sasl.server.callback.handler.class"] = handler
    return lines
