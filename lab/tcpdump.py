"""Records the loopback traffic of ports as pcap with tcpdump. Refuses a recording that lost packets."""

import re
import shutil
import signal
from pathlib import Path
from types import TracebackType

from lab.process import Process
from lab.wire import until

_START_SECONDS = 30.0


class Recording:
    """tcpdump while the `with` block lasts."""

    def __init__(self, ports: list[int], output: Path, *, nanoseconds: bool = False) -> None:
        if shutil.which("tcpdump") is None:
            raise RuntimeError("tcpdump is missing: apt-get install tcpdump")
        self._output = output
        self._log = output.with_suffix(".tcpdump")
        self._filter = " or ".join(f"tcp port {port}" for port in ports)
        self._precision = "nano" if nanoseconds else "micro"
        self._process: Process | None = None
        self.packets = 0

    def start(self) -> None:
        # immediate: the last packets before the end must not sit in a kernel buffer
        command = ["tcpdump", "-i", "lo", "-n", "-s", "0", "-B", "65536", "--immediate-mode", "-U", "-Z", "root"]
        command += [f"--time-stamp-precision={self._precision}", "-w", str(self._output), self._filter]
        self._process = Process(command, self._log)
        until("tcpdump listening", self._listens, _START_SECONDS)

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.stop(signal.SIGINT)
        self._process = None

    def check(self) -> None:
        """After `stop`: what tcpdump printed that it saw."""
        log = self._log.read_text()
        captured = re.search(r"(\d+) packets captured", log)
        dropped = re.search(r"(\d+) packets dropped by kernel", log)
        if captured is None or dropped is None:
            raise RuntimeError(f"tcpdump did not finish: {log[-500:]}")
        if int(dropped[1]):
            raise RuntimeError(f"tcpdump lost {dropped[1]} packets; record again on a quieter machine")
        self.packets = int(captured[1])

    def _listens(self) -> bool:
        if self._process is not None and self._process.status is not None:
            raise RuntimeError(f"tcpdump exited with {self._process.status}: {self._process.tail()}")
        return "listening on" in self._log.read_text()

    def __enter__(self) -> "Recording":
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
