"""Parses what people type for a message and version: `78`, `ShareFetch`, `sharefetch:v2`."""

from dataclasses import dataclass

from kafkascope.errors import NotFoundError, UsageError


@dataclass(frozen=True, slots=True)
class Target:
    """`api` is set if an API was named rather than one of its messages."""

    api: str | None
    message: str | None
    version: int | None

    @property
    def messages(self) -> tuple[str, ...]:
        return (self.message,) if self.message else (f"{self.api}Request", f"{self.api}Response")


def parse_target(text: str) -> Target:
    """`ShareFetch`, `78`, `ShareFetchRequest`, `ShareFetchRequest:2`, `sharefetch:v2`."""
    from kafkascope.schema.names import clip, parse_number

    name, colon, number = text.partition(":")
    if not colon:
        return _named(name)
    if not name:
        raise UsageError("put a name before the colon: NAME:VERSION")
    target = _named(name)
    version = parse_number(number.lower().removeprefix("v"))
    if version is None or version < 0:
        from kafkascope.schema.catalog import message

        newest = message(target.messages[0]).all_versions()[-1]
        raise UsageError(f"'{clip(number)}' isn't a version; use {target.api or target.message}:{newest}")
    return Target(target.api, target.message, version)


def _named(name: str) -> Target:
    from kafkascope.schema.names import ANY, called, find, find_api, parse_number, suggest

    api = find_api(name)
    if api:
        return Target(api, None, None)
    if parse_number(name) is not None:
        raise NotFoundError(f"no API has key {name}; `kafkascope apis` lists them")
    try:
        return Target(None, find(name), None)
    except NotFoundError:
        raise NotFoundError(f"unknown message or API {called(name)}{suggest(name, ANY)}") from None


def parse_message(text: str) -> tuple[str, int]:
    """One message at one version, for decode, encode and example."""
    target = parse_target(text)
    if target.message is None:
        version = "" if target.version is None else f":{target.version}"
        raise UsageError(
            f"{text} is an API; use {target.api}Request{version or ':VERSION'}"
            f" or {target.api}Response{version or ':VERSION'}"
        )
    if target.version is None:
        from kafkascope.schema.catalog import message
        from kafkascope.schema.layouts.layout import describe_versions

        raise UsageError(
            f"{text} needs a version, such as {target.message}:N; {describe_versions(message(target.message))}"
        )
    return target.message, target.version
