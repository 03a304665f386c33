"""Reads settings from the `KAFKASCOPE_…` environment variables. Each flag of a live command has one; secrets have two,
for the secret itself and for the name of a file with it."""

from collections.abc import Mapping
from pathlib import Path

from kafkascope.client.config.merge import PartialSettings
from kafkascope.client.secret_file import read_secret
from kafkascope.client.settings import Secret
from kafkascope.errors import UsageError

VARIABLE_PREFIX = "KAFKASCOPE_"

_TEXTS = (
    *("bootstrap", "client_id", "server_name", "sasl_mechanism", "username"),
    *("token_url", "token_client_id", "token_scope"),
)
_NUMBERS = ("timeout", "connect_timeout")
_PATHS = ("ca", "certificate", "key", "token_file", "token_ca")
_SWITCHES = ("bootstrap_controller", "tls", "insecure", "any_host_name")
_SECRETS = ("ca_password", "key_password", "password", "token_client_secret")
# the token's file is among the paths: it's reread for each authentication
_PLAIN_SECRETS = ("token",)
_LISTS = ("resolve",)
# the file itself isn't a setting
_CONFIG = "config"

_ON, _OFF = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


def variables() -> list[str]:
    """The names of all variables."""
    names = [
        *_TEXTS,
        *_NUMBERS,
        *_PATHS,
        *_SWITCHES,
        *_SECRETS,
        *(f"{secret}_file" for secret in _SECRETS),
        *_PLAIN_SECRETS,
        *_LISTS,
        _CONFIG,
    ]
    return sorted(f"{VARIABLE_PREFIX}{name.upper()}" for name in names)


def from_environment(environment: Mapping[str, str]) -> PartialSettings:
    """Ignores an empty variable."""

    def value(name: str) -> str | None:
        return environment.get(f"{VARIABLE_PREFIX}{name.upper()}") or None

    settings: dict[str, object] = {name: value(name) for name in _TEXTS}
    for name in _NUMBERS:
        if (text := value(name)) is not None:
            settings[name] = _seconds(name, text)
    for name in _PATHS:
        if (text := value(name)) is not None:
            settings[name] = Path(text)
    for name in _SWITCHES:
        if (text := value(name)) is not None:
            settings[name] = _switch(name, text)
    for name in _SECRETS:
        if (text := value(name)) is not None:
            settings[name] = Secret(text)
        elif (text := value(f"{name}_file")) is not None:
            settings[name] = read_secret(Path(text))
    for name in _PLAIN_SECRETS:
        if (text := value(name)) is not None:
            settings[name] = Secret(text.strip())
    for name in _LISTS:
        if (text := value(name)) is not None:
            settings[name] = tuple(part.strip() for part in text.split(",") if part.strip())
    if value("bootstrap") is not None:
        settings["origins"] = {"bootstrap": f"{VARIABLE_PREFIX}BOOTSTRAP"}
    return PartialSettings(**settings).with_implied()  # type: ignore[arg-type]


def config_path(environment: Mapping[str, str]) -> Path | None:
    text = environment.get(f"{VARIABLE_PREFIX}{_CONFIG.upper()}")
    return Path(text) if text else None


def _seconds(name: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise UsageError(f"{VARIABLE_PREFIX}{name.upper()} is '{text[:60]}'; it must be a number of seconds above 0")
    return seconds


def _switch(name: str, text: str) -> bool:
    if text.lower() in _ON:
        return True
    if text.lower() in _OFF:
        return False
    raise UsageError(f"{VARIABLE_PREFIX}{name.upper()} is '{text[:60]}'; it must be 1 or 0")
