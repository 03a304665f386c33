"""A capture and its Kafka ports in, what tshark makes of each message out, with its own word on how far it got."""

import os
import shutil
import subprocess
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element, fromstring

MISSING = shutil.which("tshark") is None
REASON = "tshark is not there to judge: install Debian's tshark, or Wireshark elsewhere"

# Name of the field in tshark's tree whose fields are those of record data.
RECORDS = "Message Set"
TAGS = "Tagged fields"
# What tshark notes on a message that it does not know. The first two stand on entries of ApiVersions responses as well.
_UNKNOWN = frozenset(("kafka.unknown_api_key", "kafka.unsupported_api_version", "kafka.request_missing"))
_MISSED_END = "kafka.pdu_length_mismatch"
# Fields that stand for no bytes of the message.
_LINKS = ("kafka.request_frame", "kafka.response_frame")

# (one end, other end), as `127.0.0.1:9092`
Direction = tuple[str, str]
# (from, to, text), from the first byte of the length
Leaf = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Message:
    """`header` has the first field of each name at the top of the tree; `packet`, from 1, is where the last byte came.
    `known` says that tshark has this API and version, `malformed` that it ran into the end, `whole` that it knows the
    message and read to its last byte. `leaves` are all fields but those in tags and in record data; `records` is what
    each field of record data shows."""

    packet: int
    header: dict[str, str]
    known: bool
    malformed: bool
    whole: bool
    leaves: tuple[Leaf, ...]
    records: dict[str, list[str]]

    def number(self, field: str) -> int | None:
        return int(self.header[field]) if field in self.header else None


def dissect(capture: bytes, ports: list[int]) -> dict[Direction, list[Message]]:
    """Messages by direction, in the order of the stream."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "capture")
        path.write_bytes(capture)
        kafka = [part for port in ports for part in ("-d", f"tcp.port=={port},kafka")]
        command = ["tshark", "-n", "-r", str(path), *kafka, "-Y", "kafka", "-T", "pdml", "-J", "kafka tcp ip"]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=True,
            env={**os.environ, "WIRESHARK_CONFIG_DIR": folder},
        )  # fmt: skip
    messages: dict[Direction, list[Message]] = defaultdict(list)
    for packet in fromstring(done.stdout):  # noqa: S314 - tshark wrote it
        layers = list(packet)
        number = int(_shown(_layer(layers, "geninfo"))["num"])
        address, tcp = _shown(_layer(layers, "ip")), _shown(_layer(layers, "tcp"))
        direction = (f"{address['ip.src']}:{tcp['tcp.srcport']}", f"{address['ip.dst']}:{tcp['tcp.dstport']}")
        for layer, behind in zip(layers, [*layers[1:], None], strict=True):
            if layer.get("name") == "kafka":
                malformed = behind is not None and behind.get("name") == "_ws.malformed"
                messages[direction].append(_message(number, layer, malformed))
    return messages


def _layer(layers: list[Element], name: str) -> Element:
    return next(layer for layer in layers if layer.get("name") == name)


def _shown(element: Element) -> dict[str, str]:
    shown: dict[str, str] = {}
    for field in element:
        shown.setdefault(field.get("name", ""), field.get("show", ""))
    return shown


def _message(packet: int, element: Element, malformed: bool) -> Message:
    start = int(next(field for field in element if field.get("name") == "kafka.len").get("pos", ""))
    leaves: list[Leaf] = []
    records: dict[str, list[str]] = defaultdict(list)
    _collect(element, start, leaves, records)
    noted = {field.get("name") for top in element if not _is_subtree(top) for field in top.iter("field")}
    known = not noted & _UNKNOWN
    whole = known and not malformed and _MISSED_END not in noted
    return Message(packet, _shown(element), known, malformed, whole, tuple(leaves), records)


def _is_subtree(field: Element) -> bool:
    return field.get("name") == ""


def _collect(element: Element, start: int, leaves: list[Leaf], records: dict[str, list[str]]) -> None:
    for field in element:
        name, shown = field.get("name", ""), field.get("show", "")
        if _is_subtree(field) and shown == RECORDS:
            for inner in field.iter("field"):
                records[inner.get("name", "")].append(inner.get("show", ""))
        elif _is_subtree(field) and shown != TAGS:
            _collect(field, start, leaves, records)
        elif name.startswith("kafka.") and name not in _LINKS and field.get("hide") is None:
            at = int(field.get("pos", "")) - start
            leaves.append((at, at + int(field.get("size", "")), shown))
