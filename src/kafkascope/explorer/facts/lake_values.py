"""Converts values of the lake for JSON: times to ISO text, bytes to base64."""

from base64 import b64encode
from datetime import date, datetime
from typing import Any

from kafkascope.times import iso


def plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
