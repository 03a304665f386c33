"""Chooses the decoding process: one for uploaded frames, one for uploaded recordings, one for recordings of a lake.
Each handles one request at a time.

Recordings need kernels, which take seconds to load and minutes to compile. Frames need none and never wait for them."""

import atexit
from collections.abc import Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool

from kafkascope.capture.formats import looks_recorded
from kafkascope.explorer.decode.worker import DecodeWorker
from kafkascope.explorer.gate import ByteBudget, Gate
from kafkascope.limits import (
    MAX_DECODE_SECONDS,
    MAX_QUEUED_REQUESTS,
    MAX_REREAD_SECONDS,
    MAX_UPLOAD_SECONDS,
    MAX_UPLOADS_BYTES,
)

# Columns of an exchange that are needed to find its bytes.
_REREAD_COLUMNS = "exchange_id connection_id capture_uri client_address broker_address api_key api_version api".split()
_SECONDS_TO_TELL = 1
_BUSY = "other uploads are being decoded"


class Decoder:
    """`uploads` limits the bytes that requests hold before and while they are decoded, `upload_seconds` the time that
    they take to arrive."""

    def __init__(
        self,
        seconds: float = MAX_DECODE_SECONDS,
        upload_seconds: float = MAX_UPLOAD_SECONDS,
        queued: int = MAX_QUEUED_REQUESTS,
    ) -> None:
        self.upload_seconds = upload_seconds
        self.uploads = ByteBudget(_BUSY, MAX_UPLOADS_BYTES)
        # Forms are parsed one at a time: their threads compete with those that make pages.
        self.parsing = Gate(_BUSY, 1, queued=queued)
        self._frames = DecodeWorker("kafkascope decode", seconds=seconds)
        self._recordings = DecodeWorker("kafkascope read", kernels=True, seconds=seconds)
        # Its own message reports the time limit and names the command without one.
        self._rereads = DecodeWorker("kafkascope read", kernels=True, seconds=MAX_REREAD_SECONDS + _SECONDS_TO_TELL)
        self._gates = {worker: Gate(_BUSY, 1, queued=queued) for worker in (self._frames, self._recordings)}

    def prepare(self) -> None:
        """Loads or compiles the kernels in the background, so that the first recording has as much time as others."""
        self._recordings.prepare()

    async def decode(self, content: bytes, name: str, release: str, form: str, file: str) -> dict[str, Any]:
        """The facts of the decode page. `Busy` if the queue is full."""
        recording = form in ("auto", "raw") and looks_recorded(content)
        worker = self._recordings if recording else self._frames
        async with self._gates[worker].entered():
            return await run_in_threadpool(worker.decode, content, name, release, form, file)

    def reread(self, lake: str, row: Mapping[str, Any]) -> dict[str, Any]:
        """Facts about the bytes of an exchange, from the recordings of that lake. `InputError` if it takes too much
        time or memory, `Busy` while kernels are being prepared: a second process would compile them too."""
        self._recordings.check_prepared()
        return self._rereads.facts({"lake": lake, "row": {name: row[name] for name in _REREAD_COLUMNS}})

    def close(self) -> None:
        for worker in (self._frames, self._recordings, self._rereads):
            worker.close()


DECODER = Decoder()
atexit.register(DECODER.close)
