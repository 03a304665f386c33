"""What people type for a message and a version in, names of the catalog out; and what the Tab key offers."""

from dataclasses import dataclass

import click

from kafkascope.errors import NotFoundError, UsageError


@dataclass(frozen=True, slots=True)
class Target:
    """`api` is set where an API was named rather than one of its messages."""

    api: str | None
    message: str | None
    version: int | None

    @property
    def messages(self) -> tuple[str, ...]:
        return (self.message,) if self.message else (f"{self.api}Request", f"{self.api}Response")


def parse_target(text: str) -> Target:
    """`ShareFetch`, `78`, `ShareFetchRequest`, `ShareFetchRequest:2`, `sharefetch:v2`."""
    from kafkascope.schema.names import clip, find, find_api, parse_number, suggest

    name, colon, number = text.partition(":")
    version: int | None = None
    if colon:
        version = parse_number(number.lower().removeprefix("v"))
        if version is None or version < 0:
            raise UsageError(f"'{clip(number)}' is no version; say {clip(name) or 'NAME'}:2")
    api = find_api(name)
    if api:
        return Target(api, None, version)
    if parse_number(name) is not None:
        raise NotFoundError(f"no API has key {name}; `kafkascope apis` lists them")
    try:
        return Target(None, find(name), version)
    except NotFoundError:
        raise NotFoundError(f"no message or API is called {clip(name)}{suggest(name)}") from None


def parse_message(text: str) -> tuple[str, int]:
    """One message at one version, for decode, encode and example."""
    target = parse_target(text)
    if target.message is None:
        version = "" if target.version is None else f":{target.version}"
        raise UsageError(
            f"{text} is an API; say {target.api}Request{version or ':VERSION'}"
            f" or {target.api}Response{version or ':VERSION'}"
        )
    if target.version is None:
        from kafkascope.schema.catalog import message
        from kafkascope.schema.layout import describe_versions

        raise UsageError(f"{text} needs a version, as {target.message}:N; {describe_versions(message(target.message))}")
    return target.message, target.version


def complete_message(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Messages, then their versions once a colon stands there."""
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
    """The same with APIs among them."""
    from kafkascope.schema.catalog import apis

    if ":" in incomplete:
        return complete_message(context, parameter, incomplete)
    names = [name for name in apis().values() if name.lower().startswith(incomplete.lower())]
    return names + complete_message(context, parameter, incomplete)


def complete_version_or_release(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """For diff, which compares either."""
    if incomplete[:1].isdigit():
        return complete_release(context, parameter, incomplete)
    return complete_target(context, parameter, incomplete)


json_option = click.option("--json", "as_json", is_flag=True, help="JSON for other programs.")


def complete_error(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    from kafkascope.schema.error_codes import error_codes

    return [error.name for error in error_codes().values() if error.name.startswith(incomplete.upper())]


def complete_release(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    from kafkascope.schema.releases import releases

    return [release.name for release in releases() if release.name.startswith(incomplete)]
