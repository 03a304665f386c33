"""Reads a broker's request log (`kafka.request.logger` at DEBUG) as exchanges, in the same batches as from a capture.

The log has requests and responses in Kafka's JSON form, so both are encoded again and read like frames. It has no frame
sizes, and only the size of record data; its times are those of the log line, written after the response was sent. No
content of a line raises an error: a line that can't be read is counted."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import Any

import numpy as np

from kafkascope.capture.base.flow import Frames
from kafkascope.capture.base.problems import Problems
from kafkascope.capture.exchanges.exchange_columns import KNOWN_FROM_NS
from kafkascope.capture.exchanges.exchanges import Ends, ExchangeBatch, Recordings, make_batch
from kafkascope.capture.exchanges.identity import text_hash
from kafkascope.capture.exchanges.pairing import PairStatus
from kafkascope.capture.exchanges.record_sizes import NO_SIZES, Sizes, drop_sizes, sizes_in
from kafkascope.capture.files.source import FollowPolicy, Input
from kafkascope.capture.frames.headers import API_VERSIONS, Frame, read_headers
from kafkascope.capture.frames.scan_program import ScanPrograms
from kafkascope.capture.request_log.lines import MARK, LogLine, LogLines, LongLine, parse_time
from kafkascope.codec.frame import encode_frame
from kafkascope.codec.json_form import from_json
from kafkascope.codec.message import encode
from kafkascope.errors import KafkascopeError
from kafkascope.limits import MAX_LINE_BYTES
from kafkascope.schema.catalog import apis

# Enough for the kernels to be efficient. A growing file makes smaller batches when it has no more lines.
LINES_A_BATCH = 2_000
_DECODER = json.JSONDecoder()
# Three years: longer than any wait of a broker, and within the room that times leave at the ends of 64 bits.
_LONGEST_NS = 100_000_000 * 1_000_000_000
# Durations of lines without a time count from here.
_NO_TIME_NS = KNOWN_FROM_NS - _LONGEST_NS
# At least this many lines are remembered: two equal lines have the same time, so they are near each other.
_REMEMBERED = 50_000
# Raised by values of the wrong type; `KafkascopeError` comes from the encoder.
_ODD = (KafkascopeError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError)


@dataclass(frozen=True, slots=True)
class _Entry:
    request: bytes
    response: bytes | None
    record_sizes: tuple[Sizes, Sizes]
    connection: int
    line: int
    total_ns: int
    end_ns: int | None
    place: int


@dataclass(slots=True)
class RequestLog:
    """`lines` of the file were read, `entries` of them are requests, `unread` look like one and couldn't be read;
    `problems` are lines that are too long."""

    recordings: Recordings
    names: bool = False
    lines: int = 0
    entries: int = 0
    unread: int = 0
    without_time: int = 0
    ends: list[Ends] = field(default_factory=list)
    problems: Problems = field(default_factory=Problems)
    _numbers: dict[str, int] = field(default_factory=dict)
    _places: "_Places" = field(default_factory=lambda: _Places())
    _latest_ns: int = 0
    _programs: ScanPrograms = field(default_factory=ScanPrograms)

    def read(self, source: Input, waiting: FollowPolicy | None = None, skip: int = 0) -> Iterator[ExchangeBatch]:
        """The first `skip` lines of the file were read before: only the client software is taken from them. A line of
        several parts that ends after `skip` makes its exchange: its first parts couldn't be read alone."""
        held: list[_Entry] = []
        lines = LogLines(source, waiting)
        for line in lines.read():
            self.lines = max(self.lines, lines.count)
            if isinstance(line, LongLine):
                self._too_long(line)
                continue
            if line is None:
                if held:
                    yield self._batch(held)
                    held = []
                continue
            entry = self._entry(line)
            if entry is not None and line.last >= skip:
                self.entries += 1
                held.append(entry)
            if len(held) >= LINES_A_BATCH:
                yield self._batch(held)
                held = []
        self.lines = max(self.lines, lines.count)
        if held:
            yield self._batch(held)

    def _too_long(self, line: LongLine) -> None:
        # People count lines from 1.
        detail = f"line {line.number + 1} has {line.length} bytes, more than the {MAX_LINE_BYTES} read per line"
        self.problems.add("long line", detail, line.offset, line.length, line.number)

    def _entry(self, line: LogLine) -> _Entry | None:
        at = line.text.find(MARK)
        if at < 0:
            return None
        start = at + len(MARK)
        try:
            entry, behind = _DECODER.raw_decode(line.text, start)
            header = entry["requestHeader"]
            key, version = int(header["requestApiKey"]), int(header["requestApiVersion"])
            request, request_sizes = _frame(key, version, "Request", entry["request"], header)
            response, response_sizes = None, NO_SIZES
            if isinstance(response_body := entry.get("response"), dict):
                response, response_sizes = _frame(key, version, "Response", response_body, header)
            total_ns = round(float(entry["totalTimeMs"]) * 1_000_000)
            if abs(total_ns) >= _LONGEST_NS:
                raise ValueError("no duration")
            # Last, so that nothing about a client is learnt from a line that can't be read.
            connection = self._connection(
                str(entry["connection"]), entry.get("clientInformation"), key, entry["request"]
            )
        except _ODD:
            self.unread += 1
            return None
        end_ns = line.time_ns if line.time_ns is not None else parse_time(line.text[:at])
        self.without_time += end_ns is None
        # The whole content identifies the line wherever the log is cut: correlation ids of requests that were forwarded
        # on one connection are those of several clients.
        place = self._places.of(f"{end_ns} {line.text[start:behind]}")
        return _Entry(
            request, response, (request_sizes, response_sizes), connection, line.number, total_ns, end_ns, place
        )

    def _connection(self, text: str, software: Any, key: int, request: Any) -> int:
        number = self._numbers.get(text)
        if number is None:
            # `10.0.0.1:9092-10.0.0.7:51234-3-17`: the broker, the client, and a counter of their connections.
            broker, _, rest = text.partition("-")
            client = rest.partition("-")[0]
            # First, because text that can't be encoded raises, and must leave no trace.
            new = Ends(text_hash(text.encode()), _address(client), _address(broker))
            number = self._numbers[text] = len(self.ends)
            self.ends.append(new)
        ends = self.ends[number]
        if ends.software is None and isinstance(software, dict):
            ends.software = _software(software.get("softwareName"), software.get("softwareVersion"))
        if ends.software is None and key == API_VERSIONS and isinstance(request, dict):
            # The broker knows it after this request: the line of the request itself still has "unknown".
            ends.software = _software(request.get("clientSoftwareName"), request.get("clientSoftwareVersion"))
        return number

    def _batch(self, entries: list[_Entry]) -> ExchangeBatch:
        parts: list[bytes] = []
        sizes: list[Sizes] = []
        table: list[tuple[int, int, int, int, int]] = []
        first_ns: list[int] = []
        places: list[int] = []
        request = np.empty(len(entries), dtype=np.int64)
        response = np.full(len(entries), -1, dtype=np.int64)
        status = np.full(len(entries), PairStatus.ANSWERED, dtype=np.uint8)
        first_packet = self.recordings.first_packets[-1]
        for index, entry in enumerate(entries):
            if entry.end_ns is not None:
                self._latest_ns = entry.end_ns
                times = order = (entry.end_ns - entry.total_ns, entry.end_ns)
            else:
                times, order = (_NO_TIME_NS, _NO_TIME_NS + entry.total_ns), (self._latest_ns,) * 2
            request[index] = len(parts)
            if entry.response is not None:
                response[index] = len(parts) + 1
            else:
                status[index] = (
                    PairStatus.NO_ANSWER_EXPECTED if entry.request[:2] == bytes(2) else PairStatus.UNANSWERED
                )
            for side, body in enumerate((entry.request, entry.response)):
                if body is not None:
                    parts.append(body)
                    sizes.append(entry.record_sizes[side])
                    # The line number in place of an offset: lines with equal times stay in order.
                    table.append((entry.connection, side, entry.line, order[side], first_packet + entry.line))
                    first_ns.append(times[side])
                    places.append(entry.place)
        frames = replace(Frames.whole(parts, table), first_ns=np.array(first_ns, dtype=np.int64))
        rows, content = read_headers(frames)
        batch = make_batch(
            rows, request, response, status, self.ends, self.recordings, self._programs,
            names=self.names, sized=False, content=content, record_sizes=sizes,
        )  # fmt: skip
        rows[:, Frame.OFFSET] = places
        return batch


class _Places:
    """Numbers lines by their content; a line that is repeated gets a number of its own."""

    def __init__(self) -> None:
        self._recent: dict[int, int] = {}
        self._before: dict[int, int] = {}

    def of(self, text: str) -> int:
        place = _number(text)
        times = self._recent.get(place) or self._before.get(place, 0)
        if len(self._recent) >= _REMEMBERED:
            self._before, self._recent = self._recent, {}
        self._recent[place] = times + 1
        return _number(f"{times} {text}") if times else place


def _number(text: str) -> int:
    """63 bits: places in a stream aren't negative."""
    return text_hash(text.encode(errors="surrogatepass")) >> 1


def _frame(key: int, version: int, kind: str, value: Any, header: dict[str, Any]) -> tuple[bytes, Sizes]:
    """(header and body without the length, the sizes of its record data); the header alone if the catalog can't encode
    the body."""
    api = apis().get(key)
    fields: dict[str, Any] = {"correlationId": int(header["correlationId"])}
    if kind == "Request" and not (key == 7 and version == 0):
        fields["clientId"] = header.get("clientId")
    name = f"{api}{kind}"
    try:
        if api is not None:
            sizes = sizes_in(name, value)
            drop_sizes(value)
            return encode_frame(name, version, from_json(name, version, value), fields, length=False), sizes
    except _ODD:
        pass
    if kind == "Response":
        return encode("ResponseHeader", 0, fields), NO_SIZES
    return encode("RequestHeader", 1, fields | {"requestApiKey": key, "requestApiVersion": version}), NO_SIZES


def _software(*words: object) -> str | None:
    """Only the text, without lone surrogates, which no column holds."""
    known = " ".join(word for word in words if isinstance(word, str) and word not in ("", "unknown"))
    return known.encode(errors="ignore").decode().strip() or None


def _address(text: str) -> str:
    """Formats as `[2001:db8::1]:9092` even if the log leaves out the brackets."""
    host, _, port = text.rpartition(":")
    try:
        parsed = ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return text
    return f"[{parsed}]:{port}" if parsed.version == 6 else f"{parsed}:{port}"
