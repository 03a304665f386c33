"""Defines the flags of every command that talks to a cluster, and makes `Settings` from flags, variables and a file.

No flag takes a secret: typed arguments show in the process list and in the shell's history.
"""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kafkascope.client.auth.mechanisms import mechanism_names

if TYPE_CHECKING:
    from kafkascope.client.config.merge import PartialSettings
    from kafkascope.client.settings import Secret, Settings

F = TypeVar("F", bound=Callable[..., Any])

_FILE = click.Path(path_type=Path)
*_MECHANISMS, _LAST_MECHANISM = mechanism_names()
_SECONDS = click.FloatRange(min=0, min_open=True, max=86_400)


def _number(_: click.Context, __: click.Parameter, value: float | None) -> float | None:
    """Refuses nan, the only float that passes any range."""
    if value is not None and value != value:
        raise click.BadParameter("nan isn't a number of seconds.")
    return value


_OPTIONS = (
    click.option(
        "--config",
        metavar="FILE",
        type=_FILE,
        help="File with settings of Java clients (client.properties) or librdkafka.",
    ),
    click.option("--bootstrap-controller", is_flag=True, help="HOST is a controller, not a broker."),
    click.option(
        "--timeout",
        metavar="SECONDS",
        type=_SECONDS,
        callback=_number,
        help="Timeout of one call or look, including retries; default 10.",
    ),
    click.option(
        "--connect-timeout",
        metavar="SECONDS",
        type=_SECONDS,
        callback=_number,
        help="Timeout of one connection attempt; default 5.",
    ),
    click.option("--client-id", metavar="NAME", help="Client id, as brokers log it; default kafkascope."),
    click.option(
        "--resolve",
        metavar="HOST:PORT=ADDR",
        multiple=True,
        help="Connect to ADDR[:PORT] instead of HOST:PORT, for port-forwards and tunnels; may be repeated.",
    ),
    click.option("--tls/--no-tls", default=None, help="Use TLS; any flag about certificates turns it on."),
    click.option("--ca", metavar="FILE", type=_FILE, help="Certificate authorities to trust: PEM, PKCS12 or JKS."),
    click.option("--ca-password-file", metavar="FILE", type=_FILE, help="File with the password of that store."),
    click.option(
        "--certificate", metavar="FILE", type=_FILE, help="Client certificate: PEM, or PKCS12 or JKS with its key."
    ),
    click.option("--key", metavar="FILE", type=_FILE, help="Its key in PEM, if it's in a separate file."),
    click.option("--key-password-file", metavar="FILE", type=_FILE, help="File with the password of the key or store."),
    click.option("--server-name", metavar="NAME", help="Expect this name in the certificate, and send it (SNI)."),
    click.option("--any-host-name", is_flag=True, help="Don't compare the host name with the certificate."),
    click.option("--insecure", is_flag=True, help="Accept any certificate. Anyone in between can read the traffic."),
    click.option(
        "--sasl-mechanism", metavar="NAME", help=f"{', '.join(_MECHANISMS)} or {_LAST_MECHANISM}; turns SASL on."
    ),
    click.option("--username", metavar="NAME", help="User name for SASL."),
    click.option(
        "--password-file", metavar="FILE", type=_FILE, help="File with the password; without it, a prompt asks."
    ),
    click.option(
        "--token-file", metavar="FILE", type=_FILE, help="File with a token for OAUTHBEARER; read for each login."
    ),
    click.option("--token-url", metavar="URL", help="Get the token from this endpoint, by client credentials."),
    click.option("--token-client-id", metavar="ID", help="Client id for that endpoint."),
    click.option("--token-client-secret-file", metavar="FILE", type=_FILE, help="File with the client secret."),
    click.option("--token-scope", metavar="TEXT", help="Scope to request."),
    click.option("--token-ca", metavar="FILE", type=_FILE, help="Certificate authorities to trust for that endpoint."),
)


def live_options(command: F) -> F:
    """Adds all flags. The command takes them as keyword arguments (`**live`) and passes them to `settings_from`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def settings_from(host: str, options: Mapping[str, Any]) -> "Settings":
    """Flags override variables, which override the file, which overrides defaults. HOST `-` means the addresses of
    KAFKASCOPE_BOOTSTRAP or of the file. Other names in `options` are ignored."""
    from kafkascope.cli.terminal import note
    from kafkascope.client.config.environment import config_path, from_environment
    from kafkascope.client.config.merge import make_settings

    settings = _flags(host, options).merged_over(from_environment(os.environ))
    path = options.get("config") or config_path(os.environ)
    if path is not None:
        from kafkascope.client.config.file import read_config

        settings = settings.merged_over(read_config(path), of_file=True)
    for line in settings.notes:
        note(f"kafkascope: {line}")
    return make_settings(settings, _ask)


def note_of_client(text: str) -> None:
    """Prints notices of the client, for example that brokers were left out."""
    from kafkascope.cli.terminal import note
    from kafkascope.formatting import printable

    note(f"kafkascope: {printable(text)}")


def _flags(host: str, options: Mapping[str, Any]) -> "PartialSettings":
    from kafkascope.client.config.merge import PartialSettings
    from kafkascope.client.secret_file import read_secret

    names = "timeout connect_timeout client_id tls ca certificate key server_name sasl_mechanism username token_file"
    names += " token_url token_client_id token_scope token_ca"
    flags: dict[str, Any] = {name: options.get(name) for name in names.split()}
    # without the flag, a variable or the file may decide
    flags |= {
        name: options.get(name) or None for name in ("bootstrap_controller", "any_host_name", "insecure", "resolve")
    }
    for name in ("ca_password", "key_password", "password", "token_client_secret"):
        path = options.get(f"{name}_file")
        flags[name] = None if path is None else read_secret(path)
    return PartialSettings(bootstrap=None if host in ("", "-") else host, **flags).with_implied()


def _ask(what: str) -> "Secret | None":
    """Asks only at a terminal; the input isn't shown."""
    from kafkascope.client.settings import Secret

    if sys.stdin is None or not sys.stdin.isatty() or sys.stderr is None or not sys.stderr.isatty():
        return None
    from getpass import getpass

    try:
        return Secret(getpass(f"{what}: ", sys.stderr))
    except EOFError:
        # Ctrl-D: no input, and the prompt's line is still open
        print(file=sys.stderr)
        return None
