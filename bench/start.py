"""Measures the wall time of whole commands: what a person waits for at the prompt."""

import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

_RUNS = 15
_HERE = Path(sys.executable).parent
COMMAND = str(_HERE / "kafkascope")
# ApiVersionsRequest v3 with its header and without the frame length: "acme" and "4.3.1".
FRAME = "0012000300000001000474657374000561636d6506342e332e3100"
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "python -c 'import typer'": [sys.executable, "-c", "import typer"],
    "python -c 'import click'": [sys.executable, "-c", "import click"],
    "python -c 'import kafkascope'": [sys.executable, "-c", "import kafkascope"],
    "python -c 'from kafkascope import decode'": [sys.executable, "-c", "from kafkascope import decode"],
    "kafkascope --help": [COMMAND, "--help"],
    "kafkascope show ShareFetchRequest:2": [COMMAND, "show", "ShareFetchRequest:2"],
    "kafkascope decode HEX": [COMMAND, "decode", FRAME],
}
_MODULES = (
    "kafkascope",
    "kafkascope.codec.message",
    "kafkascope.schema.catalog",
    "kafkascope.cli.main",
    "click",
    "typer",
)


def lines() -> list[str]:
    """In turns, so that a noisy minute falls on all alike."""
    taken: dict[str, list[float]] = {label: [] for label in COMMANDS}
    missing = {label for label, command in COMMANDS.items() if _exit_code(command) != 0}
    for _ in range(_RUNS):
        for label, command in COMMANDS.items():
            if label not in missing:
                start = perf_counter()
                _exit_code(command)
                taken[label].append(perf_counter() - start)
    out = [f"{'ms of wall time':<50}{'best':>8}{'median':>8}"]
    for label, seconds in taken.items():
        if label in missing:
            out.append(f"{label:<50}  not there")
        else:
            out.append(f"{label:<50}{1e3 * min(seconds):8.1f}{1e3 * median(seconds):8.1f}")
    return out


def _exit_code(command: list[str]) -> int:
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    except FileNotFoundError:
        return 127
    return done.returncode


def import_lines() -> list[str]:
    """-X importtime, each in its own process: milliseconds with all that the module imports in turn; a hint."""
    out = [f"{'ms to import':<50}{'best':>8}"]
    for module in _MODULES:
        times = [time for time in (_import_time(module) for _ in range(5)) if time is not None]
        out.append(f"{module:<50}{min(times):8.1f}" if times else f"{module:<50}  not there")
    return out


def _import_time(module: str) -> float | None:
    command = [sys.executable, "-X", "importtime", "-c", f"import {module}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        return None
    total = 0
    names = {module.split(".")[0], module}
    for line in done.stderr.splitlines():
        # import time: self [us] | cumulative | imported package, indented by depth
        _, cumulative, name = line.removeprefix("import time:").split("|")
        if name.strip() in names and not name.startswith("   "):
            total += int(cumulative)
    return total / 1e3
