"""Arguments `name=value` in, options and a log of JSON lines out: what Options.java and Truth.java are for Java."""

import json
import sys
import time
from pathlib import Path


def options() -> dict[str, str]:
    return dict(argument.split("=", 1) for argument in sys.argv[1:])


class Truth:
    """On disk before `write` returns."""

    def __init__(self, given: dict[str, str]) -> None:
        self._path = Path(given["truth"])
        self._who = given["who"]

    def write(self, event: str, **fields: object) -> None:
        line = {"at": time.time_ns() // 1000, "who": self._who, "event": event, **fields}
        with self._path.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(line) + "\n")
