"""Captures that break their reader, told by their names: `breaks-SIGSEGV.pcap` sends that signal to the process that
reads it, `breaks-IndexError.pcap` raises that, both after the first packets were given out. `begins-` breaks who takes
a first look, `looks-` who compares its times with those of the lake."""

import builtins
import os
import re
import signal
from collections.abc import Iterator
from typing import Any


def arm() -> None:
    from kafkascope.capture import reader
    from kafkascope.pipeline.ingestion import earlier_ingests as order
    from kafkascope.pipeline.ingestion import shuffle, survey

    for module, word in ((reader, "breaks"), (shuffle, "breaks"), (survey, "begins"), (order, "looks")):
        name = "packets_of" if module is order else "read_packets"
        setattr(module, name, _breaking(getattr(module, name), word))


def _breaking(read: Any, word: str) -> Any:
    def reading(source: Any, **named: Any) -> Iterator[Any]:
        name = str(source if isinstance(source, str) else getattr(source, "name", ""))
        match = re.search(rf"{word}-(\w+)", os.path.basename(name))
        for packets in read(source, **named):
            if match is None or word == "breaks":
                yield packets
            if match is not None and match[1].startswith("SIG"):
                os.kill(os.getpid(), getattr(signal, match[1]))
            elif match is not None:
                raise getattr(builtins, match[1])("bytes: 0102030405")

    return reading
