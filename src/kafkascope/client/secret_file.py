"""Reads a file that holds one secret, as a password or a token."""

from pathlib import Path

from kafkascope.client.settings import Secret
from kafkascope.client.small_file import read_small
from kafkascope.errors import InputError
from kafkascope.limits import MAX_SECRET_BYTES


def read_secret(path: Path) -> Secret:
    """The line end that editors put behind a secret is no part of it."""
    content = read_small(path, MAX_SECRET_BYTES, "a secret is one line")
    try:
        # what Windows editors put in front is no part of it either
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path} is no UTF-8 text; a secret is one line of it") from None
    if not text.strip("\r\n"):
        raise InputError(f"{path} is empty; it should hold a secret")
    return Secret(text.removesuffix("\n").removesuffix("\r"))
