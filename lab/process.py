"""Starts processes that end with this one: in order when asked, by their own pid when not, and with their parent
when Python itself is killed."""

import os
import shutil
import signal
import subprocess
from pathlib import Path
from types import TracebackType

# Kafka's ordered shutdown of one node takes 5 s, and a JVM that writes its class archive at its end a minute on two
# very busy cores.
_STOP_SECONDS = 120.0


class Process:
    """A running command, its output in a file. A context manager that stops it."""

    def __init__(
        self, command: list[str], output: Path, *, stdin: bool = False, environment: dict[str, str] | None = None
    ) -> None:
        # SIGKILL for the child when its parent dies, so that even `kill -9` of Python leaves no broker running
        guard = ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
        self.command = command[0]
        self.output = output
        self._frozen = False
        with output.open("ab") as sink:
            self._child = subprocess.Popen(
                [*guard, *command],
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                env={**os.environ, **(environment or {})},
                start_new_session=True,  # a Ctrl-C in the terminal is ours to handle, in order
            )

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def status(self) -> int | None:
        """Its exit status, None while it runs."""
        return self._child.poll()

    def tail(self) -> str:
        return self.output.read_text(errors="replace")[-2000:]

    def tell(self, line: str) -> None:
        """One line on its standard input."""
        if self._child.stdin is None:
            raise RuntimeError(f"{self.command} has no standard input")
        self._child.stdin.write(line.encode() + b"\n")
        self._child.stdin.flush()

    def freeze(self) -> None:
        self._child.send_signal(signal.SIGSTOP)
        self._frozen = True

    def thaw(self) -> None:
        self._child.send_signal(signal.SIGCONT)
        self._frozen = False

    def kill(self) -> None:
        self._child.kill()
        self._child.wait()
        self._close()

    def wait(self, seconds: float) -> int:
        """Its exit status; TimeoutError when it is not done by then."""
        try:
            status = self._child.wait(seconds)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"{self.command} still runs after {seconds:g} s: {self.tail()}") from error
        self._close()
        return status

    def ask_to_stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        if self.status is None:
            if self._frozen:
                self.thaw()
            self._child.send_signal(number)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Asked first, killed when it does not listen; nothing to do when it is gone."""
        self.ask_to_stop(number)
        try:
            self.wait(_STOP_SECONDS)
        except TimeoutError:
            self.kill()

    def _close(self) -> None:
        if self._child.stdin is not None and not self._child.stdin.closed:
            self._child.stdin.close()

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
