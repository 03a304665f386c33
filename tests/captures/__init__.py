"""A recording's name in, its capture, request logs, truth and description out; none of it needs the lab."""

import json
import lzma
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
NAMES = sorted(folder.parent.name for folder in HERE.glob("*/recording.json"))


def recording(name: str) -> dict[str, Any]:
    """`from` and `to` in microseconds since 1970, `ports` by node and listener, `packets`, `versions`."""
    description: dict[str, Any] = json.loads((HERE / name / "recording.json").read_text())
    return description


def capture(name: str) -> bytes:
    """The pcap, unpacked."""
    return lzma.decompress((HERE / name / "capture.pcap.xz").read_bytes())


def request_logs(name: str) -> dict[int, str]:
    """The request log by node."""
    files = (HERE / name).glob("request-*.log.xz")
    return {int(file.name[8 : file.name.index(".")]): lzma.decompress(file.read_bytes()).decode() for file in files}


def truth(name: str) -> list[dict[str, Any]]:
    """What programs and recipe did, by time."""
    return [json.loads(line) for line in (HERE / name / "truth.jsonl").read_text().splitlines()]
