"""Manages a decoding process. Exceeding the time or memory limit ends only that process."""

import subprocess
import sys
import threading
from typing import Any

from kafkascope.errors import InputError, UsageError
from kafkascope.explorer.decode.child import receive, send
from kafkascope.explorer.gate import Busy
from kafkascope.limits import MAX_DECODE_SECONDS

_NOT_READY = "recordings can't be read yet: their kernels are being compiled, which takes minutes after an installation"


class DecodeWorker:
    """Handles one request at a time. The process starts with the first and stays.

    `kernels` means that it reads recordings: a new process is then prepared in the background and decodes nothing
    before that.
    """

    def __init__(self, command: str, *, kernels: bool = False, seconds: float = MAX_DECODE_SECONDS) -> None:
        self._command = command
        self._kernels = kernels
        self._seconds = seconds
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = threading.Event()
        self._preparing = False
        self._closed = False

    def prepare(self) -> None:
        """Returns at once. Compiling has no time limit: no request waits for it."""
        if self._kernels and not self._preparing and not self._ready.is_set() and not self._closed:
            self._preparing = True
            threading.Thread(target=self._prepare, name="kernels", daemon=True).start()

    def check_prepared(self) -> None:
        """`Busy` while another process compiles the kernels that this one needs."""
        if self._preparing:
            raise Busy(_NOT_READY)

    def _prepare(self) -> None:
        with self._lock:
            try:
                if self._exchange({"prepare": True}, b"") is None:
                    self._end()
            finally:
                # Also if it failed: the next recording then reports why it can't be read.
                self._preparing = False
                self._ready.set()

    def decode(self, content: bytes, name: str, release: str, form: str, file: str) -> dict[str, Any]:
        """`InputError` or `UsageError` if there is nothing to show, `Busy` while kernels are compiled."""
        return self.facts({"as": name, "release": release, "form": form, "file": file}, content)

    def facts(self, head: dict[str, Any], content: bytes = b"") -> dict[str, Any]:
        """The result of the process for a request."""
        if self._kernels:
            self.prepare()
            if not self._ready.wait(self._seconds):
                raise Busy(_NOT_READY)
        with self._lock:
            answer = self._ask({**head, "seconds": self._seconds}, content)
        if self._process is None:
            self._ready.clear()
            self.prepare()
        if "facts" in answer:
            facts: dict[str, Any] = answer["facts"]
            return facts
        raise UsageError(answer["error"]) if answer["wrong"] else InputError(answer["error"])

    def _ask(self, head: dict[str, Any], content: bytes) -> dict[str, Any]:
        process = self._running()
        late = threading.Event()

        def end() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(self._seconds, end)
        timer.start()
        try:
            answer = self._exchange(head, content)
        finally:
            timer.cancel()
        if answer is not None:
            return answer
        self._end()
        error = "decoding ended without a result: it took too much time or memory"
        if late.is_set():
            error = f"decoding took more than {self._seconds:g} s and was stopped"
        return {"error": f"{error}; `{self._command}` has no such limit", "wrong": False}

    def _exchange(self, head: dict[str, Any], content: bytes) -> dict[str, Any] | None:
        """None if the process ended."""
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            send(process.stdin, head, content)
            answer = receive(process.stdout)
        except (OSError, ValueError):
            return None
        return None if answer is None else answer[0]

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._end()
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "kafkascope.explorer.decode.child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # Its error output may contain parts of what was decoded.
                stderr=subprocess.DEVNULL,
            )
            if self._closed:
                self._process.kill()
        return self._process

    def close(self) -> None:
        """Ends the process with whatever it decodes, so that stopping the server doesn't wait."""
        self._closed = True
        process = self._process
        if process is not None:
            process.kill()
        with self._lock:
            self._end()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    continue
        process.wait()
