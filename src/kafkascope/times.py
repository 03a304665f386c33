"""Converts between microseconds since 1970, datetimes and text, ISO 8601 or for people, all in UTC."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def moment_of(microseconds: int) -> datetime | None:
    """None for a time outside the calendar."""
    try:
        return EPOCH + microseconds * _MICROSECOND
    except OverflowError:
        return None


def microseconds_of(moment: datetime) -> int:
    return (moment - EPOCH) // _MICROSECOND


def iso(moment: datetime, timespec: str = "microseconds") -> str:
    """`2026-11-15T09:30:00.000000Z`."""
    return moment.isoformat(timespec=timespec).replace("+00:00", "Z")


def iso_of(microseconds: int | None) -> str | None:
    """None for an unknown time, and for one outside the calendar."""
    moment = None if microseconds is None else moment_of(microseconds)
    return None if moment is None else iso(moment)


def readable(moment: datetime, digits: int = 0) -> str:
    """`2026-11-15 09:30:00.250` with three digits after the second."""
    return f"{moment:%Y-%m-%d %H:%M:%S.%f}"[: 20 + digits].removesuffix(".")


def parse_moment(text: str) -> datetime | None:
    """A time without a zone is UTC; None for text that isn't a time."""
    try:
        moment = datetime.fromisoformat(text.strip())
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
