"""Translates the keys of a Java client.properties to settings. Keys of producers and consumers are ignored; unsupported
keys that would change the connection are listed in one line."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from kafkascope.client.auth.mechanisms import MECHANISMS, TOKEN, mechanism_named
from kafkascope.client.config.jaas import JaasLogin, parse_jaas
from kafkascope.client.config.key_stores import certificates_of
from kafkascope.client.config.keys import mechanism_of, refuse_missing_line_end, seconds_of, unread_notes
from kafkascope.client.config.merge import PartialSettings
from kafkascope.client.settings import Secret
from kafkascope.errors import InputError, UsageError
from kafkascope.formatting import close_names, did_you_mean

SECURITY_PROTOCOLS = {  # security.protocol → (TLS, SASL)
    "PLAINTEXT": (False, False),
    "SSL": (True, False),
    "SASL_PLAINTEXT": (False, True),
    "SASL_SSL": (True, True),
}
# Java's defaults, including GSSAPI: a file without a mechanism works with Kerberos or not at all.
DEFAULT_MECHANISM = "GSSAPI"

READ = (
    *("bootstrap.servers", "bootstrap.controllers", "client.id", "security.protocol", "config.providers"),
    *("request.timeout.ms", "default.api.timeout.ms", "socket.connection.setup.timeout.ms"),
    *("ssl.truststore.location", "ssl.truststore.password", "ssl.truststore.type", "ssl.truststore.certificates"),
    *("ssl.keystore.location", "ssl.keystore.password", "ssl.keystore.type", "ssl.key.password"),
    *("ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.endpoint.identification.algorithm"),
    *("sasl.mechanism", "sasl.jaas.config", "sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.scope"),
    *("sasl.oauthbearer.client.credentials.client.id", "sasl.oauthbearer.client.credentials.client.secret"),
)
# Keys about Java's own machinery, or about refreshing what we get on demand: nothing changes without them.
_HARMLESS = (
    *("ssl.protocol", "ssl.enabled.protocols", "ssl.keymanager.algorithm", "ssl.trustmanager.algorithm"),
    *("ssl.secure.random.implementation", "sasl.login.class", "sasl.login.connect.timeout.ms", "security.providers"),
    *("sasl.login.read.timeout.ms", "sasl.login.refresh.window.factor", "sasl.login.refresh.window.jitter"),
    *("sasl.login.refresh.min.period.seconds", "sasl.login.refresh.buffer.seconds", "sasl.login.retry.backoff.ms"),
    *("sasl.login.retry.backoff.max.ms", "sasl.oauthbearer.scope.claim.name", "sasl.oauthbearer.sub.claim.name"),
    *("sasl.oauthbearer.clock.skew.seconds", "sasl.oauthbearer.expected.audience"),
    *("sasl.oauthbearer.expected.issuer", "sasl.oauthbearer.header.urlencode"),
    *("sasl.oauthbearer.jwt.validator.class",),
)
_HARMLESS_STARTS = ("sasl.kerberos.", "sasl.oauthbearer.jwks.")
# The key that errors name; the later of two wins.
_ORIGINS = (
    *(("bootstrap", "bootstrap.controllers"), ("bootstrap", "bootstrap.servers"), ("ca", "ssl.truststore.location")),
    *(("certificate", "ssl.keystore.location"), ("username", "sasl.jaas.config"), ("token_ca", "sasl.jaas.config")),
)
_MODULES = ("Krb5LoginModule", *(mechanism.java_module for mechanism in MECHANISMS))
_OPTIONS = ("username", "password", "tokenauth")
_SYNONYMS = {"user": "username", "login": "username", "pass": "password", "passwd": "password", "pwd": "password"}
# Kafka's own handlers, which kafkascope replaces.
_HANDLERS = (
    "OAuthBearerLoginCallbackHandler",
    "DefaultJwtRetriever",
    "ClientCredentialsJwtRetriever",
    "FileJwtRetriever",
)
_STARTS = ("ssl.", "sasl.", "security.")
JAVA_ONLY = frozenset(
    {
        *(name for name in READ if name.startswith(("ssl.truststore.", "ssl.keystore.", "sasl.jaas."))),
        *("sasl.mechanism", "bootstrap.controllers", "default.api.timeout.ms", "sasl.login.callback.handler.class"),
        *("key.serializer", "value.serializer", "key.deserializer", "value.deserializer"),
    }
    # librdkafka has these two as well
    - {"ssl.keystore.location", "ssl.keystore.password", "sasl.mechanism"}
)


def from_java(keys: Mapping[str, str], where: str) -> PartialSettings:
    """Refuses a value for a config provider: its literal text would be wrong."""
    for name in READ:
        if "${" in keys.get(name, "") and "config.providers" in keys:
            raise UsageError(
                f"{where}: {name} uses a config provider, which kafkascope doesn't support; write out the value"
            )
    refuse_missing_line_end(keys, where)
    tls, sasl = _protocol(keys, where)
    settings: dict[str, Any] = {
        "bootstrap": keys.get("bootstrap.servers") or keys.get("bootstrap.controllers") or None,
        "bootstrap_controller": True
        if not keys.get("bootstrap.servers") and keys.get("bootstrap.controllers")
        else None,
        "client_id": keys.get("client.id") or None,
        "timeout": seconds_of(keys, where, "default.api.timeout.ms", "request.timeout.ms"),
        "connect_timeout": seconds_of(keys, where, "socket.connection.setup.timeout.ms"),
        "tls": tls,
        "sasl": sasl,
        "notes": _notes(keys, where, tls=tls, sasl=sasl),
        "origins": {name: f"{where}: {key}" for name, key in _ORIGINS if keys.get(key)},
    }
    if tls:
        settings |= _tls(keys)
    if sasl:
        sasl_settings, notes = _sasl(keys, where)
        settings |= sasl_settings
        settings["notes"] += notes
    return PartialSettings(**settings)


def _protocol(keys: Mapping[str, str], where: str) -> tuple[bool, bool]:
    protocol = keys.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol not in SECURITY_PROTOCOLS:
        raise UsageError(f"{where}: security.protocol must be one of {', '.join(SECURITY_PROTOCOLS)}")
    return SECURITY_PROTOCOLS[protocol]


def _tls(keys: Mapping[str, str]) -> dict[str, Any]:
    settings = _trust(keys, "ca")
    if keys.get("ssl.keystore.certificate.chain"):
        settings["certificate_pem"] = _inline(keys["ssl.keystore.certificate.chain"])
        if keys.get("ssl.keystore.key"):
            settings["key_pem"] = Secret(_inline(keys["ssl.keystore.key"]).decode())
    elif keys.get("ssl.keystore.location"):
        settings["certificate"] = Path(keys["ssl.keystore.location"])
    for name, key in (("store_password", "ssl.keystore.password"), ("key_password", "ssl.key.password")):
        if keys.get(key):
            settings[name] = Secret(keys[key])
    # in Java an empty value turns the comparison off
    if keys.get("ssl.endpoint.identification.algorithm", "https").strip() == "":
        settings["any_host_name"] = True
    return settings


def _trust(keys: Mapping[str, str], name: str) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if keys.get("ssl.truststore.certificates"):
        settings[f"{name}_pem"] = certificates_of(_inline(keys["ssl.truststore.certificates"])) or None
    elif keys.get("ssl.truststore.location"):
        settings[name] = Path(keys["ssl.truststore.location"])
    if keys.get("ssl.truststore.password"):
        settings[f"{name}_password"] = Secret(keys["ssl.truststore.password"])
    return settings


def _inline(text: str) -> bytes:
    """PEM in one value: line ends are continuations, or blanks if someone joined the lines."""
    begin, dash, body = text.partition("-----BEGIN ")
    if not dash:
        return text.encode()
    out = [begin]
    for block in body.split("-----BEGIN "):
        label, _, after_label = block.partition("-----")
        inside, _, _ = after_label.partition("-----END ")
        # an encrypted key of the older kind has headers before an empty line; they stay unchanged
        if ":" not in inside:
            inside = "\n" + "\n".join(inside.split()) + "\n"
        out.append(f"-----BEGIN {label}-----{inside}-----END {label}-----\n")
    return "".join(out).encode()


def _sasl(keys: Mapping[str, str], where: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Returns the settings, and notes."""
    name = mechanism_of(keys.get("sasl.mechanism", "").strip() or DEFAULT_MECHANISM, "sasl.mechanism", where)
    mechanism = mechanism_named(name)
    settings: dict[str, Any] = {"sasl_mechanism": name}
    login = parse_jaas(keys["sasl.jaas.config"], where) if keys.get("sasl.jaas.config") else None
    if mechanism is not None and mechanism.needs == TOKEN:
        return settings | _oauth(keys, login.options if login else {}, where), ()
    if mechanism is None or login is None:
        return settings, ()
    module = mechanism.java_module
    if login.module != module:
        module_there = login.module if login.module in _MODULES else "another login module"
        raise InputError(f"{where}: sasl.mechanism is {name}, but sasl.jaas.config has {module_there}, not {module}")
    return settings | _user(login), tuple(
        f"{where}: sasl.jaas.config: unknown option {name}{did_you_mean([near])}"
        for name in login.options
        if (near := _likely_option(name))
    )


def _likely_option(name: str) -> str | None:
    """The option that a misspelt one means. None if the name may be anything, even the rest of a password."""
    if name in _OPTIONS or not name.isalpha():
        return None
    near = close_names(name.lower(), _OPTIONS, cutoff=0.85)
    return near[0] if near else _SYNONYMS.get(name.lower())


def _user(login: JaasLogin) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if "username" in login.options:
        settings["username"] = login.options["username"]
    if "password" in login.options:
        settings["password"] = Secret(login.options["password"])
    if login.options.get("tokenauth", "").lower() == "true":
        settings["delegation_token"] = True
    return settings


def _oauth(keys: Mapping[str, str], options: Mapping[str, str], where: str) -> dict[str, Any]:
    """Keys of the file override options of the login module, as in Java since 4.1."""
    settings: dict[str, Any] = {}
    url = keys.get("sasl.oauthbearer.token.endpoint.url", "").strip()
    parsed = urlparse(url)
    if parsed.scheme == "file":
        settings["token_file"] = Path(unquote(parsed.path))
    elif url:
        settings["token_url"] = url
    elif any(name.startswith("unsecuredLogin") for name in options):
        raise UsageError(
            f"{where}: sasl.jaas.config makes an unsecured token; put a token into a file for --token-file"
        )
    prefix = "sasl.oauthbearer.client.credentials.client"
    identity = keys.get(f"{prefix}.id") or options.get("clientId")
    secret = keys.get(f"{prefix}.secret") or options.get("clientSecret")
    scope = keys.get("sasl.oauthbearer.scope") or options.get("scope")
    settings["token_client_id"] = identity or None
    settings["token_client_secret"] = Secret(secret) if secret else None
    settings["token_scope"] = scope or None
    extensions = tuple(
        (name.removeprefix("extension_"), value) for name, value in options.items() if name.startswith("extension_")
    )
    settings["extensions"] = extensions or None
    return settings | _trust(options, "token_ca")


def _notes(keys: Mapping[str, str], where: str, *, tls: bool, sasl: bool) -> tuple[str, ...]:
    notes = unread_notes(keys, (name for name in keys if _matters(name, keys[name])), READ, where)
    unused = "sasl.jaas.config" if not sasl and keys.get("sasl.jaas.config") else None
    unused = unused or ("ssl.truststore.location" if not tls and keys.get("ssl.truststore.location") else None)
    if unused:
        protocol = keys.get("security.protocol", "PLAINTEXT, the default")
        notes.append(f"{where}: {unused} isn't used, because security.protocol is {protocol}")
    return tuple(notes)


def _matters(name: str, value: str) -> bool:
    if name in READ or name in _HARMLESS or name.startswith(_HARMLESS_STARTS):
        return False
    return name.startswith(_STARTS) and value.rpartition(".")[2] not in _HANDLERS
