"""Record data that Kafka's own builders made, and what Kafka's own reader makes of ours; needs Maven and a JDK."""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.judge.java import JVM, jars

SOURCE = Path(__file__).resolve().parent / "RecordsJudge.java"
RELEASE = "4.3.1"


@dataclass(frozen=True, slots=True)
class Made:
    """One piece of record data and what Java reads in it."""

    name: str
    data: bytes
    truth: Any


@cache
def made_by_java() -> tuple[Made, ...]:
    """The same cases every time: the random ones have a fixed seed."""
    rows = [line.split("\t") for line in _run("make")]
    return tuple(Made(name, bytes.fromhex(hexes), _truth(text)) for name, hexes, text in rows)


def read_by_java(data: Iterable[bytes]) -> list[Any]:
    """One truth a piece of record data, in order; a string that starts with `!` where Java could not read it."""
    hex_pieces = [piece.hex() for piece in data]
    truths = [_truth(text) for text in _run("read", hex_pieces)]
    if len(truths) != len(hex_pieces):
        raise RuntimeError(f"{len(hex_pieces)} pieces of record data, {len(truths)} truths")
    return truths


def _truth(text: str) -> Any:
    return text if text.startswith("!") else json.loads(text)


def _run(mode: str, lines: list[str] | None = None) -> list[str]:
    classpath = os.pathsep.join(str(jar) for jar in dict.fromkeys([*jars(RELEASE), *jars("compression")]))
    with tempfile.TemporaryDirectory() as folder:
        answered = Path(folder, "answered")
        files = [str(answered)]
        if lines is not None:
            input_file = Path(folder, "asked")
            input_file.write_text("".join(f"{line}\n" for line in lines))
            files.insert(0, str(input_file))
        command = ["java", *JVM, f"-Djava.io.tmpdir={folder}", "-cp", classpath, str(SOURCE), mode, *files]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False
        )
        if done.returncode:
            raise RuntimeError(f"java exited with {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")
        return answered.read_text(encoding="utf-8").split("\n")[:-1]
