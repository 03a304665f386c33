"""Recordings wait for no compiler: kernels are made ready in the background, and until then the page says to retry."""

import lzma
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kafkascope.explorer.decode.decoder import Decoder
from kafkascope.explorer.decode.worker import DecodeWorker
from kafkascope.explorer.gate import Busy
from kafkascope.explorer.server.app import create
from kafkascope.limits import MAX_QUEUE_SECONDS
from tests.explorer.asgi import Answer, ask
from tests.support.traffic import request

CAPTURES = Path(__file__).parents[1] / "captures"
CAPTURE = lzma.decompress((CAPTURES / "share" / "capture.pcap.xz").read_bytes())
# Compiling all kernels takes minutes on a machine that has other work.
COMPILED_WITHIN = 600
ENDED = "decoding took more than 0.5 s and was stopped; `kafkascope read` has no such limit"
LOADED = """
import gc, io, sys
from pathlib import Path
from numba.core.dispatcher import Dispatcher
from kafkascope.explorer.decode.recordings import recording_facts
from kafkascope.capture.warm_up.kernels import load_readers

def loaded():
    return {
        (found.py_func.__module__, found.py_func.__name__, str(signature))
        for found in gc.get_objects() if isinstance(found, Dispatcher) for signature in found.signatures
    }

load_readers()
before = loaded()
assert before
for path in sys.argv[1:]:
    assert recording_facts(Path(path).read_bytes(), path)["count"]
print(sorted(loaded() - before))
"""


def test_after_the_warm_up_no_recording_needs_another_kernel() -> None:
    paths = [str(path) for name in ("capture.pcap.xz", "request-1.log.xz") for path in CAPTURES.glob(f"*/{name}")]
    assert len(paths) >= 8
    process = subprocess.run([sys.executable, "-c", LOADED, *paths], capture_output=True, text=True, check=True)
    assert process.stdout == "[]\n"


def test_until_its_kernels_are_ready_a_recording_is_told_to_wait_and_frames_are_decoded() -> None:
    decoder = Decoder(seconds=0.5)
    recordings, frames = decoder._recordings, decoder._frames
    app = create(decoder=decoder)

    def post(content: bytes) -> Answer:
        octets = {"content-type": "application/octet-stream"}
        return ask(app, "/decode.json", method="POST", headers=octets, body=content)

    def is_told_to_wait() -> bool:
        response = post(CAPTURE)
        message = (503, str(MAX_QUEUE_SECONDS), True)
        return (response.status, response.headers.get("retry-after"), "are being compiled" in response.text) == message

    try:
        process = halted(recordings)
        assert is_told_to_wait()
        with pytest.raises(Busy, match="are being compiled"):
            decoder.reread("nowhere", {})
        frames._seconds = COMPILED_WITHIN
        assert post(request("Heartbeat", 0, 1)).status == 200
        os.kill(process, signal.SIGCONT)
        recordings._seconds = COMPILED_WITHIN
        assert post(CAPTURE).json["recording"]["count"] == 404
        recordings.check_prepared()
        # A process that had to be ended is followed by one that is prepared first.
        os.kill(process, signal.SIGSTOP)
        recordings._seconds = 0.5
        response = post(CAPTURE)
        assert (response.status, response.json["problem"]) == (422, ENDED)
        assert halted(recordings) != process
        assert is_told_to_wait()
    finally:
        decoder.close()


def halted(worker: DecodeWorker) -> int:
    """The process that prepares kernels, stopped before it is done."""
    worker.prepare()
    deadline = time.monotonic() + 60
    while worker._process is None:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    process = worker._process.pid
    os.kill(process, signal.SIGSTOP)
    return process
