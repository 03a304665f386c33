"""Chooses the process that decodes an upload: frames have one, recordings another. Each decodes one upload at a time.

A recording needs kernels, which take seconds to load and minutes to compile; a frame needs none and never waits for
them."""

import atexit
from typing import Any

from starlette.concurrency import run_in_threadpool

from kafkascope.explorer.decode_recording import is_recording
from kafkascope.explorer.decode_worker import DecodeWorker
from kafkascope.explorer.gate import Budget, Gate
from kafkascope.limits import MAX_DECODE_SECONDS, MAX_QUEUED_REQUESTS, MAX_UPLOAD_SECONDS, MAX_UPLOADS_BYTES

_BUSY = "other uploads are being decoded"


class Decoder:
    """`uploads` is what requests may hold before and while they are decoded, `upload_seconds` how long they may take to
    arrive."""

    def __init__(
        self,
        seconds: float = MAX_DECODE_SECONDS,
        upload_seconds: float = MAX_UPLOAD_SECONDS,
        queued: int = MAX_QUEUED_REQUESTS,
    ) -> None:
        self.upload_seconds = upload_seconds
        self.uploads = Budget(_BUSY, MAX_UPLOADS_BYTES)
        self._frames = DecodeWorker("kafkascope decode", seconds=seconds)
        self._recordings = DecodeWorker("kafkascope read", kernels=True, seconds=seconds)
        self._gates = {worker: Gate(_BUSY, 1, queued=queued) for worker in (self._frames, self._recordings)}

    def prepare(self) -> None:
        """Loads or compiles the kernels in the background, so that the first recording has as much time as others."""
        self._recordings.prepare()

    def check_prepared(self) -> None:
        """`Busy` while kernels are made ready: whoever reads a recording here would compile them a second time."""
        self._recordings.check_prepared()

    async def decode(self, content: bytes, name: str, release: str, form: str, file: str) -> dict[str, Any]:
        """The facts of the decode page. `Busy` where others are first."""
        recording = form in ("auto", "raw") and is_recording(content)
        worker = self._recordings if recording else self._frames
        async with self._gates[worker].entered():
            return await run_in_threadpool(worker.decode, content, name, release, form, file)

    def close(self) -> None:
        for worker in self._gates:
            worker.close()


DECODER = Decoder()
atexit.register(DECODER.close)
