"""`kafkascope log` on the recorded disks of three nodes."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import cli
from tests.logs.conftest import disks
from tests.support.cli import Cli, is_one_line_error

__all__ = ["cli", "disks"]
# What is on these disks and nowhere in what is shown: passwords, and what is made of them.
SECRETS = ("store-secret", "carol-secret", "alice-secret", "bob-secret", "token-secret")


def rows(cli: Cli, *arguments: str | Path, code: int = 0) -> list[dict[str, Any]]:
    result = cli("log", "--json", *map(str, arguments))
    assert result.code == code, result.err
    return [json.loads(line) for line in result.out.splitlines()]


def test_lists_every_file_of_a_data_directory_with_its_broker(cli: Cli, disks: Path) -> None:
    listed = {row["path"] for row in rows(cli, disks / "node-3") if row["kind"] == "file"}
    assert listed == {str(path) for path in (disks / "node-3").rglob("*") if path.is_file()}
    assert {row["broker"] for row in rows(cli, disks)} == {1, 2, 3}


def test_files_put_aside_are_named_and_left_alone(cli: Cli, disks: Path) -> None:
    aside = [row for row in rows(cli, disks) if row["kind"] == "file" and row["left_alone"]]
    assert any(row["path"].endswith(".log.deleted") for row in aside)
    assert any("-delete/" in row["path"] for row in aside)
    topics = {row["topic"] for row in rows(cli, disks) if row["kind"] == "batch"}
    assert "doomed" not in topics


def test_records_of_users_are_shown_only_when_asked_for(cli: Cli, disks: Path) -> None:
    folder = disks / "node-1" / "words-0"
    assert not [row for row in rows(cli, folder) if row["kind"] == "record"]
    records = [row for row in rows(cli, folder, "--records") if row["kind"] == "record"]
    assert [row["offset"] for row in records] == list(range(20))
    assert all(row["value"] for row in records)


def test_no_credential_is_shown(cli: Cli, disks: Path) -> None:
    """The recorded metadata has SCRAM credentials and a token."""
    shown = cli("log", "--json", str(disks)).out + cli("log", str(disks)).out
    records = [json.loads(line) for line in cli("log", "--json", str(disks)).out.splitlines()]
    scram = [row["value"] for row in records if row.get("type") == "UserScramCredentialRecord"]
    assert len(scram) > 50
    assert all(value["salt"] is value["storedKey"] is value["serverKey"] is None for value in scram)
    configs = [row["value"] for row in records if row.get("type") == "ConfigRecord"]
    settings = {(value["resourceName"], value["name"]): value["value"] for value in configs}
    assert settings["orders-eu.1", "retention.ms"] == "86400000"
    assert not [secret for secret in SECRETS if secret in shown]


@pytest.mark.parametrize(
    ("topic", "type_"),
    [
        ("__cluster_metadata", "PartitionRecord"), ("__cluster_metadata", "LEADER_CHANGE"),
        ("__consumer_offsets", "OffsetCommit"), ("__consumer_offsets", "ShareGroupMetadata"),
        ("__consumer_offsets", "StreamsGroupTopology"), ("__consumer_offsets", "ConsumerGroupMemberMetadata"),
        ("__share_group_state", "ShareSnapshot"), ("__share_group_state", "ShareUpdate"),
        ("__transaction_state", "TransactionLog"), ("ledger", "ABORT"),
    ],
)  # fmt: skip
def test_filters_by_topic_and_type(cli: Cli, disks: Path, topic: str, type_: str) -> None:
    matching = [row for row in rows(cli, disks, "--topic", topic, "--type", type_.lower()) if row["kind"] != "file"]
    assert matching
    assert {(row["kind"], row["topic"], row["type"], row["problem"]) for row in matching} == {
        ("record", topic, type_, None)
    }


def test_members_of_a_classic_group_are_decoded(cli: Cli, disks: Path) -> None:
    groups = [row["value"] for row in rows(cli, disks, "--type", "GroupMetadata") if row["kind"] == "record"]
    members = [member for group in groups if group for member in group["members"]]
    assert members
    assert all(member["subscription"]["topics"] == ["words"] for member in members)


def test_filters_by_offset_start_at_the_index(cli: Cli, disks: Path) -> None:
    folder = disks / "node-1" / "packed-0"
    every = [row for row in rows(cli, folder, "--records") if row["kind"] == "record"]
    some = [row for row in rows(cli, folder, "--records", "--offsets", "150", "160") if row["kind"] == "record"]
    assert some == [row for row in every if 150 <= row["offset"] < 160]


def test_an_index_that_is_wrong_hides_nothing(cli: Cli, disks: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(disks / "node-1" / "packed-0", tmp_path / "packed-0"))
    expected = [row for row in rows(cli, folder, "--records", "--offsets", "150", "160") if row["kind"] == "record"]
    for index in folder.glob("*.index"):
        data = index.read_bytes()
        index.write_bytes(
            b"".join(data[at : at + 4] + (77 * at + 5).to_bytes(4, "big") for at in range(0, len(data), 8))
        )
    selected = [row for row in rows(cli, folder, "--records", "--offsets", "150", "160") if row["kind"] == "record"]
    assert selected == expected


def test_filters_by_time(cli: Cli, disks: Path) -> None:
    folder = disks / "node-1" / "packed-0"
    between = ("--between", "2026-01-01T14:00:00", "2026-01-01T15:00:00")
    times = {row["timestamp_ms"] for row in rows(cli, folder, "--records", *between) if row["kind"] == "record"}
    assert times
    assert all(1_767_276_000_000 <= time < 1_767_279_600_000 for time in times)


def test_stats_count_transactions_and_the_open_ones(cli: Cli, disks: Path) -> None:
    result = cli("log", "--stats", "--json", str(disks / "node-1" / "ledger-0"))
    (stats,) = json.loads(result.out)["partitions"]
    assert (stats["committed_transactions"], stats["aborted_transactions"]) == (6, 6)
    assert len(stats["open_transactions"]) == 1
    assert stats["record_types"] == {"ABORT": 6, "COMMIT": 6}


def test_an_index_named_by_itself_shows_its_entries(cli: Cli, disks: Path) -> None:
    path = disks / "node-1" / "ledger-0" / f"{5:020}.txnindex"
    entries = [row for row in rows(cli, path) if row["kind"] == "entry"]
    assert entries[0].keys() == {
        "kind", "file", "version", "producer_id", "first_offset", "last_offset", "last_stable_offset"
    }  # fmt: skip


def test_damage_is_one_line_and_everything_else_is_listed(cli: Cli, disks: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(disks / "node-1" / "packed-0", tmp_path / "packed-0"))
    segment = folder / f"{0:020}.log"
    data = segment.read_bytes()
    segment.write_bytes(data[:300] + b"\xff" * 30 + data[330:])
    whole = [row["base_offset"] for row in rows(cli, disks / "node-1" / "packed-0") if row["kind"] == "batch"]
    result = cli("log", "--json", str(folder))
    assert result.code == 3
    batches = [row for line in result.out.splitlines() if (row := json.loads(line))["kind"] == "batch"]
    assert len(whole) - len([row for row in batches if row["crc_ok"]]) in (1, 2)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["nowhere"], 1), (["--stats", "--check", "."], 2), (["--check", "--records", "."], 2),
        (["--offsets", "5", "3", "."], 2), (["--offsets", "x", "-", "."], 2), (["--type", "NoSuchRecord", "."], 1),
        (["--between", "yesterday", "-", "."], 2), (["."], 1),
    ],
)  # fmt: skip
def test_wrong_use_is_one_line(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int
) -> None:
    monkeypatch.chdir(tmp_path)
    result = cli("log", *arguments)
    assert result.code == code
    assert is_one_line_error(result.err)


@pytest.mark.parametrize("flags", [[], ["--json"], ["--stats"], ["--check"], ["--offsets", "0", "5"]])
@pytest.mark.parametrize("content", ["", "these are notes, and no batch begins here\n"])
def test_a_file_that_no_broker_writes_is_one_line(cli: Cli, tmp_path: Path, content: str, flags: list[str]) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(content)
    result = cli("log", *flags, str(path))
    assert (result.code, result.out) == (3, "")
    assert is_one_line_error(result.err)
    assert result.err.startswith(f"kafkascope: {path}: not a file of a Kafka log: ")
    assert "name a segment" in result.err and ("empty" in result.err) == (not content)


def test_a_segment_under_another_name_is_read(cli: Cli, tmp_path: Path, disks: Path) -> None:
    segment = disks / "node-1" / "packed-0" / f"{0:020}.log"
    path = tmp_path / "saved"
    path.write_bytes(segment.read_bytes())
    offsets = [row["base_offset"] for row in rows(cli, path) if row["kind"] == "batch"]
    assert offsets == [row["base_offset"] for row in rows(cli, segment) if row["kind"] == "batch"]
    assert cli("log", "--check", str(path)).code == 0


def test_foreign_files_are_named_and_left_alone(cli: Cli, tmp_path: Path, disks: Path) -> None:
    folder = Path(shutil.copytree(disks / "node-1" / "packed-0", tmp_path / "packed-0"))
    (folder / "notes.txt").write_text("notes")
    (folder / f"{0:020}.log.bak").write_text("an old copy")
    listed = {row["path"]: row["left_alone"] for row in rows(cli, folder) if row["kind"] == "file"}
    foreign = {str(folder / name): "not a file of a Kafka log" for name in ("notes.txt", f"{0:020}.log.bak")}
    assert {path: why for path, why in listed.items() if why} == foreign
    shown = cli("log", str(folder))
    assert shown.code == 0 and shown.out.count("left alone: not a file of a Kafka log") == 2
    assert "2 left alone" in shown.err
    checked = cli("log", "--check", str(folder))
    assert checked.code == 0 and "2 files not of a Kafka log left alone: no findings" in checked.err


@pytest.mark.parametrize("flags", [[], ["--json"], ["--stats"], ["--check"]])
def test_a_folder_without_files_of_a_log_is_one_line(cli: Cli, tmp_path: Path, flags: list[str]) -> None:
    text = f"kafkascope: {tmp_path}: no files of a Kafka log"
    empty = cli("log", *flags, str(tmp_path))
    assert (empty.code, empty.out, empty.err) == (1, "", f"{text}\n")
    (tmp_path / "notes.txt").write_text("notes")
    others = cli("log", *flags, str(tmp_path))
    assert (others.code, others.err) == (1, f"{text}; 1 other file\n")


def test_a_foreign_file_beside_a_log_does_not_hide_it(cli: Cli, tmp_path: Path, disks: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("notes")
    result = cli("log", "--json", str(notes), str(disks / "node-1" / "packed-0"))
    assert result.code == 3 and f"{notes}: not a file of a Kafka log" in result.err
    assert any(json.loads(line)["kind"] == "batch" for line in result.out.splitlines())
