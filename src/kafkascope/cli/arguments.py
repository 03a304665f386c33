"""Completes messages, versions, errors and releases on Tab, and defines the option `--json`."""

import click

from kafkascope.errors import UsageError


def complete_message(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Completes messages, and versions after a colon."""
    from kafkascope.schema.catalog import index, message
    from kafkascope.schema.names import find, find_api

    name, colon, number = incomplete.partition(":")
    if colon:
        api = find_api(name)
        try:
            versions = message(f"{api}Request" if api else find(name)).all_versions()
        except UsageError:
            return []
        return [f"{name}:{version}" for version in reversed(versions) if str(version).startswith(number)]
    return [entry for entry in index() if entry.lower().startswith(name.lower())]


def complete_target(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Completes messages and APIs."""
    from kafkascope.schema.catalog import apis

    if ":" in incomplete:
        return complete_message(context, parameter, incomplete)
    names = [name for name in apis().values() if name.lower().startswith(incomplete.lower())]
    return names + complete_message(context, parameter, incomplete)


def complete_version_or_release(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Completes messages, APIs and releases, for diff."""
    if incomplete[:1].isdigit():
        return complete_release(context, parameter, incomplete)
    return complete_target(context, parameter, incomplete)


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for other programs.")


def complete_error(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    from kafkascope.schema.errors.error_codes import error_codes

    return [error.name for error in error_codes().values() if error.name.startswith(incomplete.upper())]


def complete_release(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    from kafkascope.schema.releases import releases

    return [release.name for release in releases() if release.name.startswith(incomplete)]
