"""Bytes and what is said of them in, the facts of the decode page out, made by a process of its own.

What takes too long or too much memory ends that process and nothing else.
"""

import atexit
import subprocess
import sys
import threading
from typing import Any

from kafkascope.errors import InputError, UsageError
from kafkascope.explorer.decode_child import receive, send
from kafkascope.explorer.decode_recording import is_recording
from kafkascope.limits import MAX_DECODE_SECONDS, MAX_DECODE_START_SECONDS


class DecodeWorker:
    """One request at a time; the process starts with the first and stays."""

    def __init__(self, seconds: float = MAX_DECODE_SECONDS, start_seconds: float = MAX_DECODE_START_SECONDS) -> None:
        self._seconds = seconds
        self._start_seconds = start_seconds
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._reads_recordings = False

    def decode(self, content: bytes, name: str, release: str, form: str, file: str) -> dict[str, Any]:
        """`InputError` or `UsageError` where there is nothing to show."""
        with self._lock:
            recording = is_recording(content)
            # The first recording loads the kernels, and compiles them where they are not kept.
            seconds = self._start_seconds if recording and not self._reads_recordings else self._seconds
            given = {"as": name, "release": release, "form": form, "file": file, "seconds": seconds}
            answer = self._ask(given, content, seconds, recording)
            self._reads_recordings = self._reads_recordings or recording
        if "facts" in answer:
            facts: dict[str, Any] = answer["facts"]
            return facts
        raise UsageError(answer["error"]) if answer["wrong"] else InputError(answer["error"])

    def _ask(self, given: dict[str, Any], content: bytes, seconds: float, recording: bool) -> dict[str, Any]:
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        late = threading.Event()

        def end() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(seconds, end)
        timer.start()
        try:
            send(process.stdin, given, content)
            answer = receive(process.stdout)
        except OSError:
            answer = None
        finally:
            timer.cancel()
        if answer is not None:
            return answer[0]
        self._close()
        command = "kafkascope read" if recording else "kafkascope decode"
        if not late.is_set():
            said = f"decoding ended without an answer: it took too much time or memory; `{command}` has no such limits"
        elif recording:
            said = (
                f"reading took more than {seconds:g} s and was ended. The first recording on a machine waits until its"
                f" kernels are compiled, and those are kept: try again, or use `{command}`"
            )
        else:
            said = f"decoding took more than {seconds:g} s and was ended; `{command}` has no such limit"
        return {"error": said, "wrong": False}

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._close()
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "kafkascope.explorer.decode_child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # What goes wrong in there may name what was decoded.
                stderr=subprocess.DEVNULL,
            )
        return self._process

    def close(self) -> None:
        with self._lock:
            self._close()

    def _close(self) -> None:
        process, self._process = self._process, None
        self._reads_recordings = False
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


WORKER = DecodeWorker()
atexit.register(WORKER.close)
