"""Recordings of a lake are read again by a process of their own: what takes too long there ends it and nothing else."""

import os
import signal
from pathlib import Path

import pytest

from kafkascope.explorer.decode.decoder import DECODER
from kafkascope.explorer.server.app import create
from kafkascope.lake.home import open_lake
from kafkascope.lake.read.visible_rows import dataset
from tests.explorer.asgi import ask

# Compiling all kernels takes minutes on a machine that has other work.
PATIENCE = 600


def test_a_process_that_takes_too_long_is_ended_and_the_next_page_has_another(
    incidents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = dataset(open_lake(incidents / "lake"), "exchanges").to_table(columns=["exchange_id", "capture_uri"])
    known = next(row["exchange_id"] for row in rows.to_pylist() if row["capture_uri"].endswith("share.pcap.xz"))
    app, worker = create(str(incidents / "lake")), DECODER._rereads
    monkeypatch.setattr(worker, "_seconds", PATIENCE)
    assert ask(app, f"/lake/bytes/{known}.json").json["sides"]
    process = worker._process
    assert process is not None and process.pid != os.getpid()
    os.kill(process.pid, signal.SIGSTOP)
    monkeypatch.setattr(worker, "_seconds", 0.5)
    response = ask(app, f"/lake/bytes/{known}.json")
    assert (response.status, response.json["sides"]) == (200, [])
    assert response.json["why"] == "decoding took more than 0.5 s and was stopped; `kafkascope read` has no such limit"
    monkeypatch.setattr(worker, "_seconds", PATIENCE)
    assert ask(app, f"/lake/bytes/{known}.json").json["sides"]
