"""Merges flags, variables and a file to one `Settings`. The first source that sets a field wins, and fields that belong
together come from one source."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kafkascope.client.auth.mechanisms import PASSWORD, TOKEN, by_token, mechanism_named, mechanism_names
from kafkascope.client.settings import Sasl, Secret, Settings, Tls, parse_addresses, parse_resolve
from kafkascope.errors import InputError, UsageError

if TYPE_CHECKING:
    from kafkascope.client.config.key_stores import Identity

_TLS_SCHEME = re.compile(r"\b((?:SASL_)?SSL)://", re.IGNORECASE)

_TLS = ("ca", "ca_pem", "certificate", "certificate_pem", "insecure", "any_host_name", "server_name")
_SASL = ("sasl_mechanism", "username", "password", "token", "token_file", "token_url")
# If a source sets one of these, the others aren't taken from a later source.
_INSTEAD = (("ca", "ca_pem"), ("certificate", "certificate_pem"), ("token", "token_file", "token_url"))
# The same for a file's fields that belong to them: its password is for its user and its store.
_TOGETHER = (
    (("ca", "ca_pem"), ("ca", "ca_pem", "ca_password")),
    (
        ("certificate", "certificate_pem"),
        ("certificate", "certificate_pem", "key", "key_pem", "store_password", "key_password"),
    ),
    (("username",), ("password", "delegation_token")),
    (("token_client_id",), ("token_client_secret",)),
)


@dataclass(frozen=True, slots=True)
class PartialSettings:
    """The fields that one source sets; None means not set. `notes` are lines for the user; `origins` are names of
    fields for errors, such as `client.properties: ssl.truststore.location`, for sources other than flags."""

    bootstrap: str | None = None
    bootstrap_controller: bool | None = None
    client_id: str | None = None
    timeout: float | None = None
    connect_timeout: float | None = None
    resolve: tuple[str, ...] | None = None
    tls: bool | None = None
    ca: Path | None = None
    ca_pem: bytes | None = None
    ca_password: Secret | None = None
    certificate: Path | None = None
    certificate_pem: bytes | None = None
    key: Path | None = None
    key_pem: Secret | None = None
    store_password: Secret | None = None
    key_password: Secret | None = None
    insecure: bool | None = None
    any_host_name: bool | None = None
    server_name: str | None = None
    sasl: bool | None = None
    sasl_mechanism: str | None = None
    username: str | None = None
    password: Secret | None = None
    delegation_token: bool | None = None
    token: Secret | None = None
    token_file: Path | None = None
    token_url: str | None = field(default=None, repr=False)
    token_client_id: str | None = None
    token_client_secret: Secret | None = None
    token_scope: str | None = None
    token_ca: Path | None = None
    token_ca_pem: bytes | None = None
    token_ca_password: Secret | None = None
    extensions: tuple[tuple[str, str], ...] | None = None
    notes: tuple[str, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)

    def with_implied(self) -> "PartialSettings":
        """A certificate implies TLS, and a user SASL: for flags and variables, which have no security.protocol."""
        tls, sasl = self.tls, self.sasl
        if tls is None and any(getattr(self, name) for name in _TLS):
            tls = True
        if sasl is None and any(getattr(self, name) for name in _SASL):
            sasl = True
        return replace(self, tls=tls, sasl=sasl)

    def merged_over(self, lower: "PartialSettings", *, of_file: bool = False) -> "PartialSettings":
        """A password from a variable may belong to a user from a flag; a password from a file only belongs to the
        file's user."""
        kept = {field.name: getattr(lower, field.name) for field in fields(PartialSettings)}
        for names, follow in (*((names, names) for names in _INSTEAD), *(_TOGETHER if of_file else ())):
            if any(getattr(self, name) is not None for name in names):
                kept.update(dict.fromkeys(follow))
        own = {field.name: getattr(self, field.name) for field in fields(PartialSettings)}
        merged = {name: kept[name] if value is None else value for name, value in own.items()}
        origins = {name: place for name, place in lower.origins.items() if own.get(name) is None} | dict(self.origins)
        return PartialSettings(**{**merged, "notes": lower.notes + self.notes, "origins": origins})


def make_settings(partial: PartialSettings, prompt: Callable[[str], Secret | None]) -> Settings:
    """`ask` prompts for a secret by its name; None if nobody can be asked."""
    if not partial.bootstrap:
        raise UsageError(
            "no address is given: write HOST:PORT, or set KAFKASCOPE_BOOTSTRAP, or bootstrap.servers in --config"
        )
    plain = Settings(parse_addresses(partial.bootstrap, partial.origins.get("bootstrap")))
    if partial.tls is None and (scheme := _TLS_SCHEME.search(partial.bootstrap)):
        raise UsageError(f"{scheme[1]}:// means a listener with TLS: add --tls, or --no-tls to connect without")
    return Settings(
        bootstrap=plain.bootstrap,
        controllers=bool(partial.bootstrap_controller),
        tls=_tls(partial) if partial.tls else None,
        sasl=_sasl(partial, prompt) if partial.sasl else None,
        client_id=plain.client_id if partial.client_id is None else partial.client_id,
        timeout=plain.timeout if partial.timeout is None else partial.timeout,
        connect_timeout=plain.connect_timeout if partial.connect_timeout is None else partial.connect_timeout,
        resolve=tuple(parse_resolve(override) for override in partial.resolve or ()),
    )


def _tls(partial: PartialSettings) -> Tls:
    ca = _trust(partial, "ca", partial.ca_pem, partial.ca_password)
    identity = _identity(partial)
    tls = Tls(
        ca=ca,
        certificate=identity.certificate if identity else None,
        key=identity.key if identity else None,
        key_password=identity.key_password if identity else None,
        verify=not partial.insecure,
        check_host_name=not partial.any_host_name,
        server_name=partial.server_name,
    )
    # tried here, where names of files are known, and kept for the connections
    from kafkascope.client.transport.tls import context

    if ca is not None:
        with _errors_name_origin(partial, "ca"):
            context(Tls(ca=ca))
    if identity is not None:
        with _errors_name_origin(partial, "certificate" if partial.key is None else "key"):
            context(tls)
    return tls


def _trust(partial: PartialSettings, name: str, pem: bytes | None, password: Secret | None) -> bytes | None:
    path: Path | None = getattr(partial, name)
    if path is None:
        return pem
    # only if there is a store: most calls need none
    from kafkascope.client.config.key_stores import read_trust

    with _errors_name_origin(partial, name):
        return read_trust(path, password)


@contextmanager
def _errors_name_origin(partial: PartialSettings, *names: str) -> Iterator[None]:
    """Errors inside name the file of one of these fields, and where it was set; the first field, unless the error names
    another."""
    paths = {name: path for name in names if (path := getattr(partial, name)) is not None}
    for name, path in paths.items():
        # two joined lines: the path contains the next key and its value
        if name in partial.origins and "=" in str(path) and not path.exists():
            raise InputError(f"{partial.origins[name]}: this file doesn't exist")
    try:
        yield
    except InputError as error:
        text = str(error)
        meant = next((name for name, path in paths.items() if text.startswith(str(path))), None)
        if meant is None and names[0] in paths:
            text = f"{paths[names[0]]}: {text}"
        origin = partial.origins.get(meant or names[0])
        raise InputError(f"{origin}: {text}" if origin else text) from None


def _identity(partial: PartialSettings) -> "Identity | None":
    from kafkascope.client.config.key_stores import Identity, read_identity

    if partial.certificate is not None:
        store_password = partial.store_password or partial.key_password
        with _errors_name_origin(partial, "certificate", "key"):
            return read_identity(partial.certificate, partial.key, store_password, partial.key_password)
    if partial.certificate_pem is not None:
        if partial.key_pem is None:
            raise UsageError("the certificate has no key; give --key FILE")
        return Identity(partial.certificate_pem, partial.key_pem, partial.key_password)
    if partial.key is not None:
        raise UsageError("the key has no certificate; give --certificate FILE too")
    return None


def _sasl(partial: PartialSettings, prompt: Callable[[str], Secret | None]) -> Sasl:
    has_token = partial.token or partial.token_file or partial.token_url
    name = partial.sasl_mechanism or (by_token().name if has_token else None)
    if name is None:
        raise UsageError(f"the SASL mechanism is missing: give --sasl-mechanism, one of {', '.join(mechanism_names())}")
    # An unknown one is refused once the broker has reported what it offers.
    mechanism = mechanism_named(name.upper())
    needs = mechanism.needs if mechanism else None
    password = _password(partial, name.upper(), prompt) if needs == PASSWORD else partial.password
    secret = _token_secret(partial, name.upper(), prompt) if needs == TOKEN else partial.token_client_secret
    token_ca = _trust(partial, "token_ca", partial.token_ca_pem, partial.token_ca_password)
    return Sasl(
        mechanism=name.upper(),
        username=partial.username,
        password=password,
        delegation_token=bool(partial.delegation_token),
        token=partial.token,
        token_file=partial.token_file,
        token_url=partial.token_url,
        token_client_id=partial.token_client_id,
        token_client_secret=secret,
        token_scope=partial.token_scope,
        token_ca=token_ca,
        extensions=partial.extensions or (),
    )


def _password(partial: PartialSettings, mechanism: str, prompt: Callable[[str], Secret | None]) -> Secret:
    if partial.username is None:
        path, _, key = partial.origins.get("username", "").rpartition(": ")
        ways_with_file = f"set KAFKASCOPE_USERNAME, or write username in {key} of {path}"
        ways = ways_with_file if key else "or set KAFKASCOPE_USERNAME"
        raise UsageError(f"{mechanism} needs a user: give --username, {ways}")
    password = partial.password or prompt(f"password of {partial.username}")
    if password is None:
        raise UsageError(f"{mechanism} needs a password: --password-file FILE or KAFKASCOPE_PASSWORD")
    return password


def _token_secret(partial: PartialSettings, mechanism: str, prompt: Callable[[str], Secret | None]) -> Secret | None:
    """The client secret, if getting a token needs one."""
    if partial.token is not None or partial.token_file is not None:
        return None
    if partial.token_url is None:
        raise UsageError(f"{mechanism} needs a token: --token-file FILE, KAFKASCOPE_TOKEN, or --token-url URL")
    if partial.token_client_id is None:
        raise UsageError("a token endpoint needs a client id: give --token-client-id")
    secret = partial.token_client_secret or prompt(f"client secret of {partial.token_client_id}")
    if secret is None:
        raise UsageError(
            "a token endpoint needs a client secret: --token-client-secret-file FILE or KAFKASCOPE_TOKEN_CLIENT_SECRET"
        )
    return secret
