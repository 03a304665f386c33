"""Translates the keys of a librdkafka config to settings. Keys of producers and consumers are ignored."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kafkascope.client.auth.mechanisms import TOKEN, mechanism_named
from kafkascope.client.config.java import DEFAULT_MECHANISM, SECURITY_PROTOCOLS
from kafkascope.client.config.key_stores import certificates_of
from kafkascope.client.config.keys import mechanism_of, refuse_missing_line_end, seconds_of, unread_notes
from kafkascope.client.config.merge import PartialSettings
from kafkascope.client.settings import Secret
from kafkascope.errors import UsageError

READ = (
    *("bootstrap.servers", "metadata.broker.list", "client.id", "security.protocol"),
    *("socket.timeout.ms", "socket.connection.setup.timeout.ms"),
    *("ssl.ca.location", "ssl.ca.pem", "ssl.certificate.location", "ssl.certificate.pem"),
    *("ssl.key.location", "ssl.key.pem", "ssl.key.password", "ssl.keystore.location", "ssl.keystore.password"),
    *("enable.ssl.certificate.verification", "ssl.endpoint.identification.algorithm"),
    *("sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password"),
    *("sasl.oauthbearer.method", "sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.client.id"),
    *("sasl.oauthbearer.client.secret", "sasl.oauthbearer.scope", "sasl.oauthbearer.extensions"),
    *("sasl.oauthbearer.client.credentials.client.id", "sasl.oauthbearer.client.credentials.client.secret"),
    *("https.ca.location", "https.ca.pem"),
)
LIBRDKAFKA_ONLY = frozenset(
    {
        *("metadata.broker.list", "ssl.ca.location", "ssl.ca.pem", "ssl.certificate.location", "ssl.certificate.pem"),
        *("ssl.key.location", "ssl.key.pem", "enable.ssl.certificate.verification", "socket.timeout.ms"),
        *("sasl.mechanisms", "sasl.username", "sasl.password", "sasl.oauthbearer.method", "sasl.oauthbearer.client.id"),
        *("sasl.oauthbearer.client.secret", "sasl.oauthbearer.extensions", "https.ca.location", "https.ca.pem"),
        *("queue.buffering.max.ms", "enable.auto.offset.store", "broker.address.family", "api.version.request"),
    }
)
# The key that errors name; the later of two wins.
_ORIGINS = (
    *(("bootstrap", "metadata.broker.list"), ("bootstrap", "bootstrap.servers"), ("ca", "ssl.ca.location")),
    *(("certificate", "ssl.keystore.location"), ("certificate", "ssl.certificate.location")),
    *(("key", "ssl.key.location"), ("token_ca", "https.ca.location")),
)
# Keys about its own machinery: nothing changes without them.
_HARMLESS = (
    *("ssl.cipher.suites", "ssl.curves.list", "ssl.sigalgs.list", "ssl.providers"),
    *("sasl.oauthbearer.config", "enable.sasl.oauthbearer.unsecure.jwt"),
)
_HARMLESS_STARTS = ("sasl.kerberos.",)
_STARTS = ("ssl.", "sasl.", "security.", "https.")
# Java has four names; librdkafka has them in lower case, and one that no longer exists.
_FALSE = ("false", "f", "0")


def parse_librdkafka(text: str) -> dict[str, str]:
    """One `key=value` per line, comments after `#`; the last value of a key wins."""
    settings: dict[str, str] = {}
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and not name.startswith("#"):
            settings[name.strip()] = value.strip()
    return settings


def from_librdkafka(keys: Mapping[str, str], where: str) -> PartialSettings:
    refuse_missing_line_end(keys, where)
    protocol = keys.get("security.protocol", "plaintext").upper()
    if protocol not in SECURITY_PROTOCOLS:
        raise UsageError(f"{where}: security.protocol must be one of {', '.join(SECURITY_PROTOCOLS).lower()}")
    tls, sasl = SECURITY_PROTOCOLS[protocol]
    settings: dict[str, Any] = {
        "bootstrap": keys.get("bootstrap.servers") or keys.get("metadata.broker.list") or None,
        "client_id": keys.get("client.id") or None,
        "timeout": seconds_of(keys, where, "socket.timeout.ms"),
        "connect_timeout": seconds_of(keys, where, "socket.connection.setup.timeout.ms"),
        "tls": tls,
        "sasl": sasl,
        "notes": _notes(keys, where),
        "origins": {name: f"{where}: {key}" for name, key in _ORIGINS if keys.get(key)},
    }
    if tls:
        settings |= _tls(keys)
    if sasl:
        settings |= _sasl(keys, where)
    return PartialSettings(**settings)


def _tls(keys: Mapping[str, str]) -> dict[str, Any]:
    settings: dict[str, Any] = _authorities(keys, "ssl", "ca")
    if keys.get("ssl.certificate.pem"):
        settings["certificate_pem"] = _lines(keys["ssl.certificate.pem"])
        settings["key_pem"] = Secret(_lines(keys.get("ssl.key.pem", "")).decode()) if keys.get("ssl.key.pem") else None
    elif keys.get("ssl.certificate.location"):
        settings["certificate"] = Path(keys["ssl.certificate.location"])
        settings["key"] = Path(keys["ssl.key.location"]) if keys.get("ssl.key.location") else None
    elif keys.get("ssl.keystore.location"):
        settings["certificate"] = Path(keys["ssl.keystore.location"])
    for name, key in (("store_password", "ssl.keystore.password"), ("key_password", "ssl.key.password")):
        if keys.get(key):
            settings[name] = Secret(keys[key])
    if keys.get("enable.ssl.certificate.verification", "true").lower() in _FALSE:
        settings["insecure"] = True
    if keys.get("ssl.endpoint.identification.algorithm", "https").lower() == "none":
        settings["any_host_name"] = True
    return settings


def _authorities(keys: Mapping[str, str], prefix: str, name: str) -> dict[str, Any]:
    pem, location = keys.get(f"{prefix}.ca.pem"), keys.get(f"{prefix}.ca.location")
    if pem:
        return {f"{name}_pem": certificates_of(_lines(pem)) or None}
    # in librdkafka `probe` means the system's authorities
    return {name: Path(location)} if location and location != "probe" else {}


def _lines(text: str) -> bytes:
    """Values are one line: line ends inside PEM are written as \\n."""
    return text.replace("\\n", "\n").encode()


def _sasl(keys: Mapping[str, str], where: str) -> dict[str, Any]:
    key = "sasl.mechanisms" if keys.get("sasl.mechanisms") else "sasl.mechanism"
    name = mechanism_of(keys.get(key) or DEFAULT_MECHANISM, key, where)
    mechanism = mechanism_named(name)
    settings: dict[str, Any] = {"sasl_mechanism": name}
    if mechanism is not None and mechanism.needs == TOKEN:
        return settings | _oauth(keys, where)
    settings["username"] = keys.get("sasl.username") or None
    settings["password"] = Secret(keys["sasl.password"]) if keys.get("sasl.password") else None
    return settings


def _oauth(keys: Mapping[str, str], where: str) -> dict[str, Any]:
    prefix = "sasl.oauthbearer."
    method = keys.get(f"{prefix}method", "default").lower()
    if method not in ("default", "oidc"):
        raise UsageError(f"{where}: sasl.oauthbearer.method must be oidc, the only one that kafkascope has")
    credentials = f"{prefix}client.credentials.client."
    secret = keys.get(f"{prefix}client.secret") or keys.get(f"{credentials}secret")
    pairs = [pair.partition("=") for pair in keys.get(f"{prefix}extensions", "").split(",") if "=" in pair]
    settings: dict[str, Any] = {
        "token_url": keys.get(f"{prefix}token.endpoint.url") or None,
        "token_client_id": keys.get(f"{prefix}client.id") or keys.get(f"{credentials}id") or None,
        "token_client_secret": Secret(secret) if secret else None,
        "token_scope": keys.get(f"{prefix}scope") or None,
        "extensions": tuple((name.strip(), value.strip()) for name, _, value in pairs) or None,
    }
    return settings | _authorities(keys, "https", "token_ca")


def _notes(keys: Mapping[str, str], where: str) -> tuple[str, ...]:
    lost = [
        name
        for name in keys
        if name not in READ and name not in _HARMLESS and name.startswith(_STARTS)
        if not name.startswith(_HARMLESS_STARTS)
    ]
    return tuple(unread_notes(keys, lost, READ, where))
