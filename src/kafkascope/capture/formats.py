"""Lists the recording formats that are read and the compressions around them, by their first bytes, never by a name.

A reader is imported when its format is met: the list itself loads no heavy library."""

from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any

# Kinds, named as in the lake. A capture has packets, a log has lines.
CAPTURE, LOG = "capture", "request_log"
# A mark must be within this many bytes: a broker may log its start before the first request.
SNIFF_BYTES = 1 << 20


def _starts(text: str) -> tuple[bytes, ...]:
    return tuple(map(bytes.fromhex, text.split()))


@dataclass(frozen=True, slots=True)
class Format:
    """A recording has the format if it begins with one of `starts`, or has `mark` in its first SNIFF_BYTES.

    The `reader` of a CAPTURE has the methods of `PcapReader`, that of a LOG those of `RequestLog`."""

    name: str
    kind: str
    reader: str
    starts: tuple[bytes, ...] = ()
    mark: bytes = b""

    def load(self) -> Any:
        return resolve_name(self.reader)


@dataclass(frozen=True, slots=True)
class Compression:
    """`opener` has the signature of `open_gzip`."""

    name: str
    opener: str
    starts: tuple[bytes, ...]

    def load(self) -> Any:
        return resolve_name(self.opener)


_FILES = "kafkascope.capture.files"
# Microseconds, nanoseconds and Kuznetsov's modified libpcap, each in both byte orders.
_PCAP = _starts("a1b2c3d4 d4c3b2a1 a1b23c4d 4d3cb2a1 a1b2cd34 34cdb2a1")
REQUEST_LOG = Format("request log", LOG, "kafkascope.capture.request_log.reader:RequestLog", mark=b"Completed request:")

FORMATS = (
    Format("pcap", CAPTURE, f"{_FILES}.pcap:PcapReader", _PCAP),
    Format("pcapng", CAPTURE, f"{_FILES}.pcapng:PcapngReader", _starts("0a0d0d0a")),
    REQUEST_LOG,
)

# zstd and lz4 share these: skippable frames may come before any other.
_SKIPPABLE = _starts(" ".join(f"5{digit:x}2a4d18" for digit in range(16)))

FILE_COMPRESSIONS = (
    Compression("gzip", f"{_FILES}.decompress:open_gzip", _starts("1f8b")),
    Compression("zstd", f"{_FILES}.decompress:open_blocks", (*_starts("28b52ffd"), *_SKIPPABLE)),
    Compression("xz", f"{_FILES}.decompress:open_xz", _starts("fd377a585a00")),
    Compression("lz4", f"{_FILES}.decompress:open_blocks", _starts("04224d18")),
)

FORMAT_START_BYTES = max(len(start) for form in FORMATS for start in form.starts)
COMPRESSION_START_BYTES = max(len(start) for packing in FILE_COMPRESSIONS for start in packing.starts)
LONGEST_MARK = max(len(form.mark) for form in FORMATS)
CAPTURE_NAMES = [form.name for form in FORMATS if form.kind == CAPTURE]


def format_starting(head: bytes | bytearray) -> Format | None:
    """The format that begins like this; `head` has FORMAT_START_BYTES of it."""
    return next((form for form in FORMATS if head.startswith(form.starts)), None)


def format_marked(content: bytes | bytearray, begin: int = 0) -> Format | None:
    """The format whose mark is in `content`, from `begin` on."""
    return next((form for form in FORMATS if form.mark and content.find(form.mark, begin) >= 0), None)


def compression_starting(head: bytes) -> Compression | None:
    return next((packing for packing in FILE_COMPRESSIONS if head.startswith(packing.starts)), None)


def compressions_or_plain() -> str:
    *most, last = (packing.name for packing in FILE_COMPRESSIONS)
    return f"plain or in {', '.join(most)} or {last}"


def looks_recorded(content: bytes) -> bool:
    """If it may be a recording: a compressed file may contain anything."""
    known = format_starting(content) or compression_starting(content) or format_marked(content[:SNIFF_BYTES])
    return known is not None
