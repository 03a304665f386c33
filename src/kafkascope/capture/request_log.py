"""A broker's request log in (`kafka.request.logger` at DEBUG), exchanges out: the same batches as a capture gives.

The log has requests and responses in Kafka's JSON form, so both are encoded again and read like frames. It tells no
sizes of frames, and of record data the size alone; its times are those of the log line, written when the answer had
been sent."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

import numpy as np

from kafkascope.capture.exchanges import Ends, ExchangeBatch, Recordings, make_batch
from kafkascope.capture.flow import Frames
from kafkascope.capture.headers import API_VERSIONS, read_headers
from kafkascope.capture.identity import text_hash
from kafkascope.capture.log_lines import MARK, LogLine, parse_time, read_log_lines
from kafkascope.capture.pairing import ANSWERED, NO_ANSWER_EXPECTED, UNANSWERED
from kafkascope.capture.record_sizes import NO_SIZES, Sizes, sizes_in, without_sizes
from kafkascope.capture.scan_program import ScanPrograms
from kafkascope.capture.source import Input, Waiting
from kafkascope.codec.frame import encode_frame
from kafkascope.codec.json_form import from_json
from kafkascope.codec.message import encode
from kafkascope.errors import KafkascopeError
from kafkascope.schema.catalog import apis

# Enough for the kernels; what a person waits for comes sooner, when a growing file has no more.
LINES_A_BATCH = 2_000
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class _Entry:
    request: bytes
    response: bytes | None
    record_sizes: tuple[Sizes, Sizes]
    connection: int
    line: int
    start_ns: int
    end_ns: int
    expects_answer: bool
    correlation: int


@dataclass(slots=True)
class RequestLog:
    """`lines` were read, `entries` of them are requests, `unread` look like one and are not."""

    recordings: Recordings
    names: bool = False
    lines: int = 0
    entries: int = 0
    unread: int = 0
    without_time: int = 0
    ends: list[Ends] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)
    _programs: ScanPrograms = field(default_factory=ScanPrograms)

    def read(self, source: Input, waiting: Waiting | None = None, skip: int = 0) -> Iterator[ExchangeBatch]:
        """The first `skip` lines are known: they tell who the clients are, and give no exchange."""
        held: list[_Entry] = []
        for line in read_log_lines(source, waiting):
            if line is None:
                if held:
                    yield self._batch(held)
                    held = []
                continue
            self.lines += 1
            entry = self._entry(line)
            if entry is not None and self.lines > skip:
                self.entries += 1
                held.append(entry)
            if len(held) >= LINES_A_BATCH:
                yield self._batch(held)
                held = []
        if held:
            yield self._batch(held)

    def _entry(self, line: LogLine) -> _Entry | None:
        at = line.text.find(MARK)
        if at < 0:
            return None
        try:
            told = _DECODER.raw_decode(line.text, at + len(MARK))[0]
            header = told["requestHeader"]
            key, version = int(header["requestApiKey"]), int(header["requestApiVersion"])
            correlation = int(header["correlationId"])
            request, asked = _frame(key, version, "Request", told["request"], header)
            total_ns = round(float(told["totalTimeMs"]) * 1_000_000)
            connection = self._connection(str(told["connection"]), told.get("clientInformation"), key, told["request"])
        except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
            self.unread += 1
            return None
        answer = told.get("response")
        response, answered = None, NO_SIZES
        if isinstance(answer, dict):
            response, answered = _frame(key, version, "Response", answer, header)
        end_ns = line.time_ns if line.time_ns is not None else parse_time(line.text[:at])
        if end_ns is None:
            self.without_time += 1
            end_ns = 0
        return _Entry(
            request,
            response,
            (asked, answered),
            connection,
            line.number,
            end_ns - total_ns,
            end_ns,
            response is not None,
            correlation,
        )

    def _connection(self, text: str, software: Any, key: int, request: Any) -> int:
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = len(self.ends)
            # `10.0.0.1:9092-10.0.0.7:51234-3-17`: the broker, the client, and which of their connections.
            broker, _, rest = text.partition("-")
            client = rest.partition("-")[0]
            self.ends.append(Ends(text_hash(text.encode()), _address(client), _address(broker)))
        found = self.ends[number]
        if found.software is None and isinstance(software, dict):
            found.software = _software(software.get("softwareName"), software.get("softwareVersion"))
        if found.software is None and key == API_VERSIONS and isinstance(request, dict):
            # The broker knows it from this request on: the line of the request itself has "unknown" still.
            found.software = _software(request.get("clientSoftwareName"), request.get("clientSoftwareVersion"))
        return number

    def _batch(self, entries: list[_Entry]) -> ExchangeBatch:
        parts: list[bytes] = []
        sizes: list[Sizes] = []
        table: list[tuple[int, int, int, int, int]] = []
        request = np.empty(len(entries), dtype=np.int64)
        response = np.full(len(entries), -1, dtype=np.int64)
        status = np.full(len(entries), ANSWERED, dtype=np.uint8)
        first_packet = self.recordings.first_packets[-1]
        for index, entry in enumerate(entries):
            # Connection, correlation id and time name a line wherever the log is cut.
            place = (entry.correlation & 0xFFFF_FFFF) << 24 ^ entry.end_ns // 1_000_000
            request[index] = len(parts)
            parts.append(entry.request)
            sizes.append(entry.record_sizes[0])
            table.append((entry.connection, 0, place, entry.start_ns, first_packet + entry.line))
            if entry.response is not None:
                response[index] = len(parts)
                parts.append(entry.response)
                sizes.append(entry.record_sizes[1])
                table.append((entry.connection, 1, place, entry.end_ns, first_packet + entry.line))
        frames = Frames.whole(parts, table)
        rows = read_headers(frames)
        for index, entry in enumerate(entries):
            if not entry.expects_answer:
                status[index] = NO_ANSWER_EXPECTED if entry.request[:2] == bytes(2) else UNANSWERED
        return make_batch(
            rows, request, response, status, self.ends, self.recordings, self._programs,
            names=self.names, sized=False, keep=(frames,), record_sizes=sizes,
        )  # fmt: skip


def _frame(key: int, version: int, kind: str, value: Any, header: dict[str, Any]) -> tuple[bytes, Sizes]:
    """Header and body without the length, and the sizes of its record data; the header alone where the catalog cannot
    write the body."""
    api = apis().get(key)
    fields: dict[str, Any] = {"correlationId": int(header["correlationId"])}
    if kind == "Request" and not (key == 7 and version == 0):
        fields["clientId"] = header.get("clientId")
    name = f"{api}{kind}"
    try:
        if api is not None:
            body = from_json(name, version, without_sizes(value))
            return encode_frame(name, version, body, fields, length=False), sizes_in(name, value)
    except KafkascopeError:
        pass
    if kind == "Response":
        return encode("ResponseHeader", 0, fields), NO_SIZES
    return encode("RequestHeader", 1, fields | {"requestApiKey": key, "requestApiVersion": version}), NO_SIZES


def _software(*words: object) -> str | None:
    return " ".join(str(word) for word in words if word and word != "unknown") or None


def _address(text: str) -> str:
    """`[2001:db8::1]:9092` also where the log leaves the brackets out."""
    host, _, port = text.rpartition(":")
    try:
        found = ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return text
    return f"[{found}]:{port}" if found.version == 6 else f"{found}:{port}"
