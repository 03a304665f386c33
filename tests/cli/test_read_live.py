"""`read` while a recording is made: a line as soon as its packets or log lines are there, through a pipe or from a file
that grows, is replaced or begins again; Ctrl-C ends with the account."""

import json
import os
import signal
import subprocess
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest

from tests.cli.test_read import answer, ask
from tests.support.cli import COMMAND, hear_interrupts
from tests.support.packet_build import Talk, enhanced, interface, pcap, section

# Ends a run that hangs, and is never reached by one that works.
HANGS_SECONDS = 120


@dataclass(slots=True)
class Live:
    """A running `read`. `next_line` returns the next line of standard output, and waits for it."""

    child: "subprocess.Popen[bytes]"

    def feed(self, data: bytes) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write(data)
        self.child.stdin.flush()

    def next_line(self) -> str:
        return self._line(self.child.stdout)

    def warned(self) -> str:
        return self._line(self.child.stderr)

    def correlation(self) -> int:
        """Of the next exchange, with --json."""
        return int(json.loads(self.next_line())["correlation_id"])

    def end(self) -> tuple[int, str, str]:
        """(exit code, what is left on standard output, on standard error) after the pipe is closed."""
        out, err = self.child.communicate()
        return self.child.returncode, out.decode(), err.decode()

    def interrupt(self) -> tuple[int, str, str]:
        self.child.send_signal(signal.SIGINT)
        assert self.child.stdout is not None and self.child.stderr is not None
        out, err = self.child.stdout.read(), self.child.stderr.read()
        return self.child.wait(), out.decode(), err.decode()

    def _line(self, stream: IO[bytes] | None) -> str:
        assert stream is not None
        line = stream.readline().decode()
        assert line.endswith("\n"), f"it ended after {line!r}"
        return line.rstrip("\n")


@contextmanager
def live(*arguments: str) -> Iterator[Live]:
    pipe = subprocess.PIPE
    # As a person has it: Python keeps what it prints to a pipe unless told to hand it on.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(
        [COMMAND, "read", *arguments],
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        env=environment,
        preexec_fn=hear_interrupts,
    ) as child:
        guard = threading.Timer(HANGS_SECONDS, child.kill)
        guard.start()
        try:
            yield Live(child)
        finally:
            guard.cancel()
            child.kill()


def exchanges(count: int) -> list[list[tuple[int, bytes]]]:
    """Packets of one connection, an exchange after the other; the first have what it takes to know it for Kafka."""
    talk = Talk().open()
    parts = []
    for number in range(count):
        talk.say(0, ask(number, "Heartbeat", 3, groupId="g", memberId="m", generationId=1))
        talk.say(1, answer(number, "Heartbeat", 3))
        if number >= FIRST - 1:
            parts.append(talk.packets)
            talk.packets = []
    return parts


FIRST = 4


def as_pcap(parts: list[list[tuple[int, bytes]]]) -> list[bytes]:
    return [pcap(part)[0 if number == 0 else 24 :] for number, part in enumerate(parts)]


def as_pcapng(parts: list[list[tuple[int, bytes]]]) -> list[bytes]:
    made = [b"".join(enhanced(packet, time_ns // 1000) for time_ns, packet in part) for part in parts]
    return [section() + interface() + made[0], *made[1:]]


def as_gzip(parts: list[list[tuple[int, bytes]]]) -> list[bytes]:
    """Flushed after each part, as a program does that compresses what it records."""
    packer = zlib.compressobj(wbits=31)
    return [packer.compress(part) + packer.flush(zlib.Z_SYNC_FLUSH) for part in as_pcap(parts)] + [packer.flush()]


FORMS: dict[str, Callable[[list[list[tuple[int, bytes]]]], list[bytes]]] = {
    "pcap": as_pcap,
    "pcapng": as_pcapng,
    "gzip": as_gzip,
}


@pytest.mark.parametrize(("form", "follow"), [("pcap", ["--follow"]), *((form, []) for form in FORMS)])
def test_a_pipe_gives_a_line_as_soon_as_the_packets_are_there(form: str, follow: list[str]) -> None:
    parts = FORMS[form](exchanges(8))
    with live("-", "--json", *follow) as reading:
        reading.feed(parts[0])
        assert [reading.correlation() for _ in range(FIRST)] == [0, 1, 2, 3]
        for number in range(1, 5):
            reading.feed(parts[number])
            assert reading.correlation() == FIRST - 1 + number
        for part in parts[5:]:
            reading.feed(part)
        code, out, err = reading.end()
    assert (code, out) == (0, "")
    assert "8 exchanges" in err


def test_lines_for_people_come_as_soon_as_well() -> None:
    parts = as_pcap(exchanges(6))
    with live("-") as reading:
        reading.feed(parts[0])
        assert "latency" in reading.next_line()
        for _ in range(FIRST):
            assert "Heartbeat v3" in reading.next_line()
        for part in parts[1:]:
            reading.feed(part)
            assert "Heartbeat v3" in reading.next_line()
        assert reading.end()[0] == 0


def log_line(number: int) -> bytes:
    fields: dict[str, Any] = {
        "isForwarded": False,
        "requestHeader": {"requestApiKey": 12, "requestApiVersion": 3, "correlationId": number, "clientId": "app"},
        "request": {"groupId": "g", "generationId": 1, "memberId": "m", "groupInstanceId": None},
        "response": {"throttleTimeMs": 0, "errorCode": 0},
        "connection": "10.0.0.1:9092-10.0.0.7:40001-3-17",
        "totalTimeMs": 1.5,
    }
    return f"[2026-11-15 09:30:{number:02},123] DEBUG Completed request:{json.dumps(fields)} (kafka)\n".encode()


@pytest.mark.parametrize("follow", [[], ["--follow"]], ids=["", "follow"])
def test_a_request_log_in_a_pipe_gives_a_line_as_soon_as_it_is_written(follow: list[str]) -> None:
    with live("-", "--json", *follow) as reading:
        reading.feed(b"[2026-11-15 09:29:00,000] INFO the broker starts (kafka.server.KafkaServer)\n")
        for number in range(4):
            reading.feed(log_line(number))
            assert reading.correlation() == number
        code, _, err = reading.end()
    assert code == 0
    assert err == "5 log lines read: 4 exchanges in 3 s\n"


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


@pytest.mark.parametrize(
    ("form", "begins"),
    [("pcap", "empty"), ("pcapng", "cut in its header"), ("pcap", "whole"), ("pcapng", "whole"), ("gzip", "empty")],
)
def test_a_growing_capture_is_followed_until_ctrl_c(tmp_path: Path, form: str, begins: str) -> None:
    path = tmp_path / "growing"
    first, *rest = FORMS[form](exchanges(6))
    length = {"empty": 0, "cut in its header": 3, "whole": len(first)}[begins]
    path.write_bytes(first[:length])
    with live(str(path), "--follow", "--json") as reading:
        append(path, first[length:])
        assert [reading.correlation() for _ in range(FIRST)] == [0, 1, 2, 3]
        for number, part in enumerate(rest[:2]):
            append(path, part)
            assert reading.correlation() == FIRST + number
        code, out, err = reading.interrupt()
    assert (code, out) == (130, "")
    assert err.startswith("15 packets read: 6 exchanges in "), err


def test_a_growing_request_log_is_followed_until_ctrl_c(tmp_path: Path) -> None:
    path = tmp_path / "kafka-request.log"
    path.write_bytes(b"[2026-11-15 09:29:00,000] INFO the broker starts\n")
    with live(str(path), "--follow", "--json") as reading:
        for number in range(3):
            # a line comes in two pieces: nothing is said before it is whole
            line = log_line(number)
            append(path, line[:50])
            append(path, line[50:])
            assert reading.correlation() == number
        code, out, err = reading.interrupt()
    assert (code, out) == (130, "")
    assert err == "4 log lines read: 3 exchanges in 2 s\n"


@pytest.mark.parametrize("how", ["replaced", "shortened"])
def test_a_request_log_that_is_rotated_goes_on_with_the_new_one(tmp_path: Path, how: str) -> None:
    path = tmp_path / "kafka-request.log"
    path.write_bytes(log_line(0))
    with live(str(path), "--follow", "--json") as reading:
        assert reading.correlation() == 0
        append(path, log_line(1))
        assert reading.correlation() == 1
        if how == "replaced":
            append(path, log_line(2))  # just before: it belongs to the old one and is not lost
            path.rename(tmp_path / "kafka-request.log.1")
            path.write_bytes(b"")
            assert reading.correlation() == 2
        else:
            os.truncate(path, 0)
        assert reading.warned() == f"kafkascope: {path} was {how}; reading continues with the new file"
        append(path, log_line(3))
        assert reading.correlation() == 3
        code, _, err = reading.interrupt()
    assert code == 130
    assert err.startswith(f"{3 + (how == 'replaced')} log lines of 2 files read")


def test_a_capture_that_is_replaced_goes_on_with_the_same_connections(tmp_path: Path) -> None:
    parts = exchanges(6)
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(parts[0]))
    with live(str(path), "--follow", "--json") as reading:
        first = [json.loads(reading.next_line()) for _ in range(FIRST)]
        path.rename(tmp_path / "a.pcap.1")
        path.write_bytes(pcap(parts[1]))
        second = json.loads(reading.next_line())
        assert "was replaced" in reading.warned()
        assert reading.interrupt()[0] == 130
    assert second["correlation_id"] == FIRST
    assert second["connection_id"] == first[0]["connection_id"]
    assert second["packet"] == 0


def test_what_takes_the_place_of_a_recording_and_is_none_ends_it(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(exchanges(4)[0]))
    with live(str(path), "--follow", "--json") as reading:
        for _ in range(FIRST):
            reading.next_line()
        other = tmp_path / "other"
        other.write_bytes(b"\x7fELF" + bytes(99))
        other.rename(path)
        code, _, err = reading.end()
    assert code == 3
    replaced, refused, account = err.splitlines()
    assert "was replaced" in replaced
    assert "isn't a recording" in refused
    assert "4 exchanges" in account


@pytest.mark.parametrize("way", [[], ["--json"], ["--stats"], ["--stats", "--json"]], ids=" ".join)
def test_ctrl_c_on_a_pipe_tells_what_was_read_so_far(tmp_path: Path, way: list[str]) -> None:
    # A second file that is a pipe nobody writes to: all of the first has been read when it is opened.
    log, pipe = tmp_path / "request.log", tmp_path / "pipe"
    os.mkfifo(pipe)
    log.write_bytes(b"".join(map(log_line, range(5))))
    with live(str(log), str(pipe), *way) as reading, pipe.open("wb"):
        code, out, err = reading.interrupt()
    assert code == 130
    assert err == "5 log lines read: 5 exchanges in 4 s\n"
    assert "Heartbeat" in out
    assert len(out.splitlines()) >= 5


def test_ctrl_c_while_an_exchange_is_looked_for_tells_what_was_read(tmp_path: Path) -> None:
    log, pipe = tmp_path / "request.log", tmp_path / "pipe"
    os.mkfifo(pipe)
    log.write_bytes(b"".join(map(log_line, range(5))))
    with live(str(log), str(pipe), "--exchange", "f" * 24) as reading, pipe.open("wb"):
        assert reading.interrupt() == (130, "", "5 log lines read: 5 exchanges in 4 s\n")


def test_a_second_ctrl_c_costs_neither_tables_nor_account(tmp_path: Path) -> None:
    log, pipe = tmp_path / "request.log", tmp_path / "pipe"
    os.mkfifo(pipe)
    # Statistics of more connections than a pipe takes: they are being written until somebody reads them.
    lines = [log_line(number % 60).replace(b":40001-", b":%d-" % (40_001 + number)) for number in range(500)]
    log.write_bytes(b"".join(lines))
    with live(str(log), str(pipe), "--stats", "--json") as reading, pipe.open("wb"):
        reading.child.send_signal(signal.SIGINT)
        begun = reading.next_line()
        code, out, err = reading.interrupt()
    assert len(json.loads(begun + out)["connections"]) == 500
    assert (code, err) == (130, "500 log lines read: 500 exchanges in 59 s\n")
