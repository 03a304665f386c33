"""Reads a file with one secret, such as a password or a token."""

from pathlib import Path

from kafkascope.client.settings import Secret
from kafkascope.client.small_file import read_small
from kafkascope.errors import InputError
from kafkascope.limits import MAX_SECRET_BYTES


def read_secret(path: Path) -> Secret:
    """The line end that editors append isn't part of the secret."""
    content = read_small(path, MAX_SECRET_BYTES, "a secret is one line")
    try:
        # nor is the byte order mark of Windows editors
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path} isn't UTF-8 text; a secret is one line of text") from None
    if not text.strip("\r\n"):
        raise InputError(f"{path} is empty; it should contain a secret")
    return Secret(text.removesuffix("\n").removesuffix("\r"))
