"""Parses `name=value` arguments and logs JSON lines, like Options.java and Truth.java for Java."""

import json
import sys
import time
from pathlib import Path


def options() -> dict[str, str]:
    return dict(argument.split("=", 1) for argument in sys.argv[1:])


class Truth:
    """On disk before `write` returns."""

    def __init__(self, options: dict[str, str]) -> None:
        self._path = Path(options["truth"])
        self._who = options["who"]

    def write(self, event: str, **fields: object) -> None:
        line = {"at": time.time_ns() // 1000, "who": self._who, "event": event, **fields}
        with self._path.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(line) + "\n")
