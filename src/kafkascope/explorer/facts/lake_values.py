"""Converts values of the lake for JSON: times to ISO text, bytes to base64."""

from base64 import b64encode
from datetime import UTC, date, datetime, timedelta
from typing import Any


def plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def moment(microseconds: int | None) -> str | None:
    if microseconds is None:
        return None
    return str(plain(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)))
