"""Converts a capture to columns of exchanges and messages on one thread, and prints counts and times.

python -m bench.capture_columns busy.pcap            what came out, as JSON
python -m bench.capture_columns busy.pcap --steps    and the processor time of each step
python -m bench.capture_columns busy.pcap --rounds 5 the best of five in one process, without its start
"""

import argparse
import gc
import json
from collections.abc import Callable
from functools import wraps
from time import process_time
from typing import Any

from kafkascope.capture import reader
from kafkascope.capture.exchanges import exchange_columns
from kafkascope.capture.exchanges import messages as message_tables
from kafkascope.capture.exchanges.exchanges import Pairer
from kafkascope.capture.exchanges.messages import Messages
from kafkascope.capture.frames.framing import Framer
from kafkascope.capture.net.segments import SegmentReader
from kafkascope.capture.tcp.reassembly import Reassembler


def _read_columns(path: str) -> dict[str, int]:
    messages = Messages()
    exchanges = rows = errors = 0

    def count(tables: Any) -> None:
        nonlocal rows, errors
        for message in tables:
            rows += message.table.num_rows
            # `_error` is the last.
            errors += message.table.num_rows - message.table.column(message.table.num_columns - 1).null_count

    for batch in reader.Reading(path).batches():
        columns = exchange_columns.to_arrow(batch)
        exchanges += columns.num_rows
        count(messages.add(batch, columns))
    count(messages.finish())
    return {"exchanges": exchanges, "messages": rows, "undecoded": errors}


class Steps:
    """Processor seconds by step; what runs within a step counts for the inner one alone."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._open: list[float] = []

    def time(self, owner: Any, name: str, step: str) -> None:
        plain: Callable[..., Any] = getattr(owner, name)

        @wraps(plain)
        def timed(*args: Any, **named: Any) -> Any:
            self._open.append(0.0)
            start = process_time()
            try:
                return plain(*args, **named)
            finally:
                taken = process_time() - start
                self.seconds[step] = self.seconds.get(step, 0.0) + taken - self._open.pop()
                if self._open:
                    self._open[-1] += taken

        setattr(owner, name, timed)

    def time_items(self, owner: Any, name: str, step: str) -> None:
        """The same for what gives its results one by one."""
        plain: Callable[..., Any] = getattr(owner, name)

        def items(*args: Any, **named: Any) -> Any:
            source = iter(plain(*args, **named))
            self.time(holder := _Next(source), "take", step)
            while (item := holder.take()) is not None:
                yield item

        setattr(owner, name, items)


class _Next:
    def __init__(self, source: Any) -> None:
        self._source = source

    def take(self) -> Any:
        return next(self._source, None)


def _time_steps() -> Steps:
    steps = Steps()
    steps.time_items(reader, "read_packets", "packets")
    owners = {SegmentReader: "segments", Reassembler: "reassembly", Pairer: "pairing"}
    for owner, step in owners.items():
        for name in ("feed", "finish"):
            steps.time(owner, name, step)
    for name in ("portions", "last_portions"):
        steps.time_items(Framer, name, "framing")
    steps.time(message_tables, "decode_columns", "decode_columns")
    steps.time(exchange_columns, "to_arrow", "exchange columns")
    steps.time(message_tables, "places_of", "grouping bodies")
    steps.time(Messages, "_table", "tables around decode_columns")
    return steps


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.capture_columns")
    parser.add_argument("file")
    parser.add_argument("--steps", action="store_true")
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    # As tasks of the pipeline do: what is loaded by now stays.
    gc.freeze()
    if options.steps:
        # Kernels are loaded, or compiled, when first used.
        _read_columns(options.file)
    steps = _time_steps() if options.steps else None
    least = float("inf")
    for _ in range(options.rounds):
        start = process_time()
        result: dict[str, Any] = dict(_read_columns(options.file))
        least = min(least, process_time() - start)
    result["seconds"] = least
    if steps is not None:
        timed = sum(steps.seconds.values())
        result["steps"] = steps.seconds | {"the rest": least - timed}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
