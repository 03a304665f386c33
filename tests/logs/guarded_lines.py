"""The kernel of lines between pages that nobody may touch: batches end where a page begins that can't be read, and the
room for lines where one begins that can't be written. In a process of its own, which a wrong access ends."""

import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from kafkascope.cli.output import json_text
from kafkascope.columnar.log import job as jobs
from kafkascope.columnar.log.text import SLACK
from kafkascope.logs.batch_columns import sound_headers
from kafkascope.logs.directories import LogFile
from kafkascope.logs.json_lines import JsonLines, Lines
from kafkascope.logs.window import Window
from tests.columnar.guarded import Guarded
from tests.logs.internal_topics import INTERNAL_TOPICS, mutated, packed, records_of, write_segment

_ROOM = 20_000


def main() -> None:
    random_ = random.Random(11)
    with TemporaryDirectory() as folder:
        for topic in INTERNAL_TOPICS:
            records = list(records_of(topic))
            for number in range(3):
                whole = mutated(records, random_) if number else records
                _read(write_segment(Path(folder), topic, packed(whole, "none", 7)), topic)


def _read(path: Path, topic: str) -> None:
    file = LogFile(str(path), "segment", path.stat().st_size, 1, topic, 0, 0)
    written = 0
    with Window(str(path)) as window:
        for item in sound_headers(window):
            assert isinstance(item, tuple)
            data, place, numbers, rows = item
            for row in range(rows):
                # Batch by batch, so that each of them ends before the page.
                start = int(numbers[0, row]) - place
                held = Guarded(int(numbers[1, row]))
                held.bytes[:] = data[start : start + int(numbers[1, row])]
                lines = JsonLines(file, json_text, records=False)
                room = Guarded(_ROOM + SLACK)
                out: Any = np.frombuffer(room.bytes, np.uint8)
                lines._out = out
                lines._job[jobs.ROOM] = room.address + _ROOM
                own = np.ascontiguousarray(numbers[:, row : row + 1])
                for part in lines._of_headers(window, held.bytes, int(numbers[0, row]), own):
                    written += part.records if isinstance(part, Lines) else 0
    assert written


if __name__ == "__main__":
    main()
