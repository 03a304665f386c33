"""Caps on what pages list, on files that break an ingest and heads of HTTP, driven to their edges."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kafkascope import limits
from kafkascope.cli.live.check_listen import Watched
from kafkascope.errors import InputError
from kafkascope.explorer.server.app import create
from kafkascope.lake.home import make_lake
from kafkascope.lake.write.commit import commit
from kafkascope.pipeline.ingestion import ingest as ingesting
from kafkascope.pipeline.ingestion.failing_files import BrokenFiles
from tests.explorer.asgi import ask
from tests.lake.build import CAPTURES, exchanges, half_land, rows, written


def test_pages_of_a_lake_list_so_many_exchanges_and_recordings(tmp_path: Path) -> None:
    """MAX_LISTED_EXCHANGES and MAX_SHOWN_RECORDINGS"""
    lake = make_lake(tmp_path / "lake")
    count = limits.MAX_SHOWN_RECORDINGS + 3
    half_land(lake, "i1", exchanges(f"e{number:03}" for number in range(limits.MAX_LISTED_EXCHANGES + 3)))
    named = rows(CAPTURES, [{"ingest_id": "i1", "capture_uri": f"{number}.pcap"} for number in range(count)])
    commit(lake, CAPTURES, written(lake, "i1", CAPTURES, named), "i1")
    app = create(lake.uri)
    assert len(ask(app, "/lake/exchanges.json").json["exchanges"]) == limits.MAX_LISTED_EXCHANGES
    facts = ask(app, "/lake/index.json").json
    assert (len(facts["recordings"]), facts["recordings_left"]) == (limits.MAX_SHOWN_RECORDINGS, 3)


def test_an_ingest_goes_on_without_so_many_broken_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """MAX_BROKEN_FILES"""
    attempts = 0

    def break_another(*_: Any) -> None:
        nonlocal attempts
        attempts += 1
        raise BrokenFiles({f"file-{attempts}": "killed the worker"})

    monkeypatch.setattr(ingesting, "_ingest", break_another)
    monkeypatch.setattr(ingesting, "check_version", lambda _: None)
    monkeypatch.setattr(ingesting, "find_inputs", lambda _: [])
    with pytest.raises(InputError, match=f"and {limits.MAX_BROKEN_FILES} more; ingest the others without them"):
        ingesting.ingest(None, [], tmp_path / "lake")  # type: ignore[arg-type]
    assert attempts == limits.MAX_BROKEN_FILES + 1


def test_a_long_head_of_http_ends_its_connection() -> None:
    """MAX_HTTP_HEAD_BYTES"""

    async def work() -> bytes:
        watched = Watched(None, None)  # type: ignore[arg-type]
        server = await asyncio.start_server(watched.answer, "127.0.0.1", 0, limit=limits.MAX_HTTP_HEAD_BYTES)
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
            writer.write(b"GET /metrics HTTP/1.1\r\nx: " + b"y" * (2 * limits.MAX_HTTP_HEAD_BYTES))
            try:
                return await asyncio.wait_for(reader.read(), 30)
            except ConnectionError:
                return b""
            finally:
                writer.close()

    assert b"200" not in asyncio.run(work())[:16]
