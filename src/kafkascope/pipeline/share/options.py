"""Checks the options of the source `kafkascope-share`, and makes the client's settings from them where they are needed.
Credentials stay in their files and variables, and never pass through Spark."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kafkascope.client.consumer.options import check_options
from kafkascope.errors import UsageError
from kafkascope.formatting import close_names, did_you_mean

if TYPE_CHECKING:
    from kafkascope.client.settings import Settings

SOURCE = "kafkascope-share"
_NAMES = (
    *("bootstrap", "group", "topics", "config", "clientId", "timeout"),
    *("maxRecordsPerTrigger", "minPartitions", "maxRecordsPerPartition", "maxWait", "renew", "failOnDataLoss"),
    *("outcomes", "maxDeliveryCount", "deadLetterTable"),
)
_KNOWN = {name.lower(): name for name in _NAMES}
_LARGEST = 1_000_000_000
_DEFAULT_RECORDS = 1_000_000
# As long as Java's consumers: a broker that restarts is waited for.
_DEFAULT_TIMEOUT = 60.0
# How long a call of Spark waits for records: a query that is stopped waits as long.
_DEFAULT_WAIT = 0.5
_LONGEST_WAIT = 300.0


@dataclass(frozen=True, slots=True)
class ShareOptions:
    """As the user gave them: text and numbers, which travel to executors. `renew` None means where brokers can."""

    bootstrap: str | None
    group: str
    topics: tuple[str, ...]
    config: str | None
    client_id: str | None
    timeout: float | None
    max_records: int
    min_partitions: int
    max_partition_records: int
    max_wait: float
    renew: bool | None
    fail_on_data_loss: bool
    outcomes: str | None
    max_delivery_count: int | None
    dead_letters: str | None

    def settings(self) -> "Settings":
        """Of the machine that this runs on."""
        from kafkascope.client.config.environment import config_path, from_environment
        from kafkascope.client.config.merge import PartialSettings, make_settings

        own = PartialSettings(bootstrap=self.bootstrap, client_id=self.client_id, timeout=self.timeout)
        settings = own.with_implied().merged_over(from_environment(os.environ))
        path = Path(self.config) if self.config else config_path(os.environ)
        if path is not None:
            from kafkascope.client.config.file import read_config

            settings = settings.merged_over(read_config(path), of_file=True)
        settings = settings.merged_over(PartialSettings(timeout=_DEFAULT_TIMEOUT))
        return make_settings(settings, lambda _: None)


def parse_options(texts: Mapping[str, str]) -> ShareOptions:
    """`UsageError` for unknown options, and for values that an option can't have."""
    options = {name.lower(): str(value) for name, value in texts.items()}
    for name in options.keys() - _KNOWN.keys():
        hint = did_you_mean(close_names(name, _KNOWN), f"there are {', '.join(_NAMES)}")
        raise UsageError(f"unknown option {name[:60]} of the source {SOURCE}{hint}")
    group = options.get("group", "").strip()
    topics = tuple(dict.fromkeys(part.strip() for part in options.get("topics", "").split(",") if part.strip()))
    if not group:
        raise UsageError(f"{SOURCE}: name the share group: .option('group', 'orders')")
    if not topics:
        raise UsageError(f"{SOURCE}: name topics: .option('topics', 'orders,returns')")
    check_options(group, topics, {})
    limit = _number(options, "maxdeliverycount", 1)
    dead_letters = options.get("deadlettertable") or None
    if (limit is None) != (dead_letters is None):
        raise UsageError("set both maxDeliveryCount and deadLetterTable: records beyond the count go to the table")
    return ShareOptions(
        bootstrap=options.get("bootstrap") or None,
        group=group,
        topics=topics,
        config=options.get("config") or None,
        client_id=options.get("clientid") or None,
        timeout=_seconds(options, "timeout", 86_400.0),
        max_records=_number(options, "maxrecordspertrigger", 1) or _DEFAULT_RECORDS,
        min_partitions=_number(options, "minpartitions", 1) or 1,
        max_partition_records=_number(options, "maxrecordsperpartition", 1) or _LARGEST,
        max_wait=_seconds(options, "maxwait", _LONGEST_WAIT) or _DEFAULT_WAIT,
        renew=_flag(options, "renew"),
        fail_on_data_loss=_flag(options, "failondataloss") is not False,
        outcomes=options.get("outcomes") or None,
        max_delivery_count=limit,
        dead_letters=dead_letters,
    )


def _number(options: Mapping[str, str], name: str, least: int) -> int | None:
    if name not in options:
        return None
    text = options[name].strip()
    if not (text.isascii() and text.isdecimal()) or len(text) > 10 or not least <= int(text) <= _LARGEST:
        raise UsageError(f"{_KNOWN[name]}: '{text[:60]}' isn't a whole number from {least} to {_LARGEST:,}")
    return int(text)


def _seconds(options: Mapping[str, str], name: str, most: float) -> float | None:
    if name not in options:
        return None
    try:
        seconds = float(options[name])
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= most:
        raise UsageError(f"{_KNOWN[name]}: '{options[name][:60]}' isn't a number of seconds above 0, up to {most:g}")
    return seconds


def _flag(options: Mapping[str, str], name: str) -> bool | None:
    if name not in options:
        return None
    value = options[name].strip().lower()
    if value not in ("true", "false"):
        raise UsageError(f"{_KNOWN[name]}: '{value[:60]}' is neither true nor false")
    return value == "true"
