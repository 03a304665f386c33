"""What a share consumer can be asked for, checked before anything is sent."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from kafkascope.client.consumer.results import Refused
from kafkascope.client.share.values import AcquireMode, FetchLimits
from kafkascope.errors import UsageError
from kafkascope.limits import MAX_BUFFERED_RECORD_BYTES, MAX_STRING_BYTES

ACQUIRE_MODES = {mode.name.lower(): mode for mode in AcquireMode}
ACKNOWLEDGEMENT_MODES = ("explicit", "implicit")
_MOST_RECORDS = 1_000_000
_LONGEST_WAIT = 300.0


@dataclass(frozen=True, slots=True)
class ConsumerOptions:
    """`acquire_mode` and `acknowledgement_mode` as Kafka names them; None is record_limit where brokers can (4.2).
    `renew` restarts the locks of records that the application holds; None does so where brokers can. `read_ahead`
    records may wait while it works; None is those of one fetch while it is quick. `on_refused` gets acknowledgements
    that didn't count; without it they are raised. `on_note` gets a line about what else went wrong."""

    group: str
    topics: tuple[str, ...]
    acquire_mode: str | None = "batch_optimized"
    acknowledgement_mode: str = "explicit"
    max_records: int = 500
    max_wait: float = 0.5
    min_bytes: int = 1
    max_bytes: int = 16_777_216
    read_ahead: int | None = None
    renew: bool | None = False
    rack: str | None = None
    on_refused: Callable[[Refused], None] | None = None
    on_note: Callable[[str], None] | None = None

    @property
    def implicit(self) -> bool:
        return self.acknowledgement_mode == "implicit"

    @property
    def needs_version_2(self) -> bool:
        return self.renew is True or self.acquire_mode == "record_limit"

    def limits(self, fetch_version: int) -> FetchLimits:
        mode = ACQUIRE_MODES[self.acquire_mode or ("record_limit" if fetch_version >= 2 else "batch_optimized")]
        return FetchLimits(self.max_wait, self.min_bytes, self.max_bytes, self.max_records, mode)


def check_options(group: Any, topics: Any, more: dict[str, Any]) -> ConsumerOptions:
    """UsageError for what no broker would take."""
    _check_name(group, "group")
    if isinstance(topics, str):
        topics = (topics,)
    if not isinstance(topics, Iterable):
        raise UsageError("topics must be topic names")
    names = tuple(topics)
    if not names:
        raise UsageError("no topic given; name at least one")
    for topic in names:
        _check_name(topic, "topic")
    unknown = sorted(more.keys() - set(ConsumerOptions.__dataclass_fields__))
    if unknown:
        known = ", ".join(name for name in ConsumerOptions.__dataclass_fields__ if name not in ("group", "topics"))
        raise UsageError(f"a share consumer has no option {unknown[0]}; it has {known}")
    options = ConsumerOptions(group, tuple(dict.fromkeys(names)), **more)
    if options.acquire_mode is not None:
        _check_choice(options.acquire_mode, "acquire_mode", tuple(ACQUIRE_MODES))
    _check_choice(options.acknowledgement_mode, "acknowledgement_mode", ACKNOWLEDGEMENT_MODES)
    _check_number(options.max_records, "max_records", 1, _MOST_RECORDS)
    _check_number(options.min_bytes, "min_bytes", 0, MAX_BUFFERED_RECORD_BYTES)
    _check_number(options.max_bytes, "max_bytes", 1, MAX_BUFFERED_RECORD_BYTES)
    if options.read_ahead is not None:
        _check_number(options.read_ahead, "read_ahead", 0, _MOST_RECORDS)
    wait = options.max_wait
    if isinstance(wait, bool) or not isinstance(wait, int | float) or not 0 <= wait <= _LONGEST_WAIT:
        raise UsageError(f"max_wait is {wait!r}; use seconds from 0 to {_LONGEST_WAIT:g}")
    return options


def _check_name(value: Any, what: str) -> None:
    if not isinstance(value, str) or not value:
        raise UsageError(f"a {what} is a name, not {value!r}"[:200])
    if len(value.encode(errors="replace")) > MAX_STRING_BYTES:
        raise UsageError(f"the name of a {what} has at most {MAX_STRING_BYTES:,} bytes")


def _check_choice(value: Any, name: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise UsageError(f"{name} is {value!r}"[:200] + f"; there are {' and '.join(choices)}")


def _check_number(value: Any, name: str, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise UsageError(f"{name} is {value!r}"[:200] + f"; use a whole number from {least:,} to {most:,}")
