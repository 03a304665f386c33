"""Commented hex in, bytes out: everything from `#` to the end of a line is for the reader."""

import re


def hexes(text: str) -> bytes:
    return bytes.fromhex(re.sub(r"#[^\n]*", "", text))
