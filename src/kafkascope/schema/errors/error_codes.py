"""Looks up Kafka's error codes by name or number, with cause and remedy. An unknown code is data."""

from dataclasses import dataclass
from functools import cache

from kafkascope.errors import NotFoundError
from kafkascope.formatting import close_names, did_you_mean
from kafkascope.schema.files import lines, text
from kafkascope.schema.names import called, parse_number


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """`release` is the first that has the code; `aliases` are its earlier names."""

    code: int
    name: str
    retriable: bool
    exception: str | None
    release: str
    aliases: tuple[str, ...]


@cache
def error_codes() -> dict[int, ErrorCode]:
    by_code = {}
    for line in lines("errors.txt"):
        code, name, retriable, exception, release, aliases = line.split(" ")
        by_code[int(code)] = ErrorCode(
            int(code),
            name,
            retriable == "retriable",
            None if exception == "-" else exception,
            release,
            () if aliases == "-" else tuple(aliases.split(",")),
        )
    return by_code


def error_name(code: int) -> str:
    """For display; a code that the catalog doesn't know keeps its number."""
    error = error_codes().get(code)
    return error.name if error else f"UNKNOWN({code})"


@cache
def by_name() -> dict[str, ErrorCode]:
    named = {alias: error for error in error_codes().values() for alias in error.aliases}
    return named | {error.name: error for error in error_codes().values()}


def find_error(query: str) -> ErrorCode:
    """By number, name, earlier name or exception, in any case."""
    number = parse_number(query)
    if number is not None:
        error = error_codes().get(number)
        if error is None:
            codes = error_codes()
            raise NotFoundError(f"unknown error code {query}; the catalog knows {min(codes)} to {max(codes)}")
        return error
    name = query.upper().replace("-", "_")
    error = by_name().get(name)
    if error is None and query:
        # In logs the exception has its package.
        exception = query.lower().rpartition(".")[2]
        error = next((e for e in error_codes().values() if e.exception and e.exception.lower() == exception), None)
    if error is None:
        hint = did_you_mean(close_names(name, list(by_name()), most=3), "`kafkascope errors` lists all")
        raise NotFoundError(f"unknown error {called(query)}{hint}")
    return error


@cache
def _advice() -> dict[str, tuple[str, str]]:
    advice = {}
    for block in text("prose/errors.txt").split("\n\n"):
        rows = [row for row in block.strip().splitlines() if not row.startswith("#")]
        if rows:
            cause, remedy = (row.strip().partition(": ")[2] for row in rows[1:3])
            advice[rows[0].strip()] = (cause, remedy)
    return advice


def cause_and_remedy(name: str) -> tuple[str, str]:
    return _advice()[name]
