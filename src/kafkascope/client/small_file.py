"""Reads a file whole, up to a limit."""

from pathlib import Path

from kafkascope.errors import InputError


def read_small(path: Path, most: int, hint: str) -> bytes:
    """`hint` is appended to the error for a file with more bytes than `most`."""
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise InputError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    if len(content) > most:
        raise InputError(f"{path} is larger than {most} bytes; {hint}")
    return content
