"""Checks the options of a read. An unknown one is refused: a misspelt `tabel` would otherwise read another table."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass

from kafkascope.errors import UsageError
from kafkascope.formatting import close_names, did_you_mean
from kafkascope.lake.place import place_of

EXCHANGES = "exchanges"
# `path` and `paths` are what Spark makes of the argument of `load`: one path, or a list of several as JSON.
_PATH, _PATHS = "path", "paths"
_OPTIONS = ("table", "columns", "tasks", "ports", "keepPayloads", "ignoreCorruptFiles", "quietSeconds")
_KNOWN = {name.lower(): name for name in (_PATH, _PATHS, *_OPTIONS)}
# As for `ingest --follow`: without a change for so long, the newest file of a folder is complete.
_QUIET_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """`tasks` is None where the source chooses, `columns` where all are wanted."""

    paths: tuple[str, ...]
    table: str
    columns: tuple[str, ...] | None
    tasks: int | None
    ports: tuple[int, ...]
    contents: bool
    skips_bad_files: bool
    quiet: float


def parse_options(written: Mapping[str, str]) -> SourceOptions:
    """`UsageError` for unknown options, and for values that an option can't have."""
    options = {name.lower(): str(value) for name, value in written.items()}
    for name in options.keys() - _KNOWN.keys():
        hint = did_you_mean(close_names(name, _KNOWN), f"there are {', '.join(_OPTIONS)}")
        raise UsageError(f"unknown option {name} of the source kafkascope{hint}")
    columns = options.get("columns")
    tasks = _number(options, "tasks")
    if tasks is not None and tasks < 1:
        raise UsageError("tasks: at least 1")
    ports = _list(options.get("ports", ""))
    if not all(port.isdecimal() and 0 < int(port) < 65_536 for port in ports):
        raise UsageError(f"ports: '{options['ports']}' isn't a list of ports, such as 9092,9094")
    return SourceOptions(
        paths=tuple(_paths(options)),
        table=options.get("table", EXCHANGES),
        columns=None if columns is None else tuple(_list(columns)),
        tasks=tasks,
        ports=tuple(map(int, ports)),
        contents=_flag(options, "keeppayloads"),
        skips_bad_files=_flag(options, "ignorecorruptfiles"),
        quiet=_quiet(options),
    )


def _paths(options: Mapping[str, str]) -> list[str]:
    paths = [options[_PATH]] if _PATH in options else []
    if _PATHS in options:
        paths += json.loads(options[_PATHS])
    if not paths or not all(paths):
        raise UsageError("name a recording or a lake: spark.read.format('kafkascope').load('night.pcap')")
    # Whole: another process reads it, in a folder of its own.
    return [place_of(os.fspath(path)).uri for path in paths]


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _number(options: Mapping[str, str], name: str) -> int | None:
    if name not in options:
        return None
    if not options[name].strip().isdecimal():
        raise UsageError(f"{_KNOWN[name]}: '{options[name]}' isn't a number")
    return int(options[name])


def _flag(options: Mapping[str, str], name: str) -> bool:
    value = options.get(name, "false").strip().lower()
    if value not in ("true", "false"):
        raise UsageError(f"{_KNOWN[name]}: '{options[name]}' is neither true nor false")
    return value == "true"


def _quiet(options: Mapping[str, str]) -> float:
    text = options.get("quietseconds", str(_QUIET_SECONDS))
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise UsageError(f"quietSeconds: '{text}' isn't a number of seconds")
    return seconds
