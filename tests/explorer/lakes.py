"""Lakes for the tests of the lake browser: recorded incidents, names that are markup, secrets on the wire."""

import shutil
from pathlib import Path
from typing import Any

from kafkascope.lake.home import Lake, make_lake
from tests.captures import HERE
from tests.logs.recorded import unpack_disks
from tests.pipeline import secrets_planted
from tests.report.build import HOSTILE, delivery, finding, incident, put
from tests.support.lakes import ingest_here

NAMES = ("share", "clients")
LOG = "clients.log.xz"
LOG_FOLDER = "__share_group_state-0"
NOON_US = 1_794_744_000_000_000


def recordings(folder: Path) -> list[Path]:
    """Copies, so that a test can take them away."""
    folder.mkdir(parents=True, exist_ok=True)
    copies = [(HERE / name / "capture.pcap.xz", folder / f"{name}.pcap.xz") for name in NAMES]
    copies.append((HERE / "clients" / "request-1.log.xz", folder / LOG))
    return [Path(shutil.copy(source, target)) for source, target in copies]


def incident_lake(folder: Path) -> Lake:
    """`folder/lake`, its recordings and disks beside it, with the findings that Spark would have made."""
    lake = ingest_here(recordings(folder / "recordings"), folder / "lake")
    ingest_here([unpack_disks(folder / "disks") / "node-1" / LOG_FOLDER], folder / "lake")
    for name, rows in incident("share").items():
        put(lake, name, rows)
    return lake


def secret_lake(folder: Path) -> Lake:
    folder.mkdir(parents=True, exist_ok=True)
    return ingest_here([secrets_planted.capture(folder / "secrets.pcap")], folder / "lake")


def hostile_lake(folder: Path) -> Lake:
    """Markup wherever the wire has a name."""
    lake = make_lake(folder / "lake")
    row: dict[str, Any] = {
        "exchange_id": "abc123",
        "connection_id": HOSTILE,
        "capture_uri": f"/nowhere/{HOSTILE}.pcap",
        "request_at": NOON_US,
        "response_at": NOON_US + 10,
        "latency_us": 10,
        "api_key": 78,
        "api": "ShareFetch",
        "api_version": 1,
        "client_id": HOSTILE,
        "client_address": HOSTILE,
        "broker_address": HOSTILE,
        "client_software": HOSTILE,
        "error_code": 999,
        "error": HOSTILE,
        "status": HOSTILE,
    }
    keys = ("exchange_id", "connection_id", "request_at", "response_at", "client_id", "api_version")
    body = {name: row[name] for name in keys} | {"group_id": HOSTILE, "member_id": HOSTILE}
    strange = row | {"exchange_id": "def456", "api": HOSTILE, "api_key": 999, "api_version": None}
    put(lake, "exchanges", [row, strange])
    put(lake, "share_fetch_request", [body])
    put(lake, "connections", [{"connection_id": HOSTILE, "first_at": NOON_US, "last_at": NOON_US, "protocol": HOSTILE}])
    put(lake, "share_deliveries", [delivery(group_id=HOSTILE)])
    values = {"subject": HOSTILE, "subject_kind": HOSTILE, "rule": HOSTILE, "summary": HOSTILE, "advice": HOSTILE}
    put(lake, "findings", [finding("critical", **values, evidence=["abc123"], figures=f'{{"a": {HOSTILE!r}}}')])
    recording = {"ingest_id": "5d1f", "capture_uri": row["capture_uri"], "kind": "capture", "bytes": 5, "digest": "0"}
    put(lake, "captures", [recording | {"exchanges": 2, "first_at": NOON_US, "last_at": NOON_US}])
    return lake
