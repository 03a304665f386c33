"""What comes from the wire never steers the terminal: every text field, in every way of `read` for people."""

import re
from pathlib import Path
from typing import Any

import pytest

from kafkascope.codec.records.record_data import encode_records
from kafkascope.codec.records.record_types import Record, new_batch
from tests.cli.test_read import answer, ask, read_json, rows
from tests.cli.test_read_filters import exchange_fields, log_line
from tests.support.cli import Cli
from tests.support.packet_build import Talk, pcap

# An escape sequence, line breaks, DEL, a one-byte escape (C1), text from right to left, a line separator.
EVIL = "a\033[31m\r\n\x7f\x9b2J\u202eb\u2028c"
NICE = re.sub(r"[^ -~]", "\N{REPLACEMENT CHARACTER}", EVIL)


def captured(api: str, version: int, request: dict[str, Any], response: dict[str, Any], client: str = "app") -> bytes:
    talk = Talk().open()
    for number in range(3):
        talk.say(0, ask(number, api, version, client, **request)).say(1, answer(number, api, version, **response))
    return pcap(talk.packets)


def logged(**changes: Any) -> bytes:
    return log_line(exchange_fields(7) | changes).encode()


def produced() -> bytes:
    batch = new_batch([Record(0, 0, EVIL.encode(), EVIL.encode(), ((EVIL, EVIL.encode()),))])
    data = [{"name": EVIL, "partitionData": [{"index": 0, "records": encode_records([batch])}]}]
    return captured("Produce", 9, {"acks": -1, "timeoutMs": 1, "transactionalId": EVIL, "topicData": data}, {})


BROKER = {"nodeId": 1, "host": EVIL, "port": 1, "rack": EVIL}
HEARTBEAT = {"groupId": "g", "memberId": "m"}
SOFTWARE = {"clientSoftwareName": "x", "clientSoftwareVersion": "1"}
FIELDS = {
    "client id": captured("Heartbeat", 3, HEARTBEAT, {}, EVIL),
    "group": captured("Heartbeat", 3, HEARTBEAT | {"groupId": EVIL}, {}),
    "member": captured("Heartbeat", 3, HEARTBEAT | {"memberId": EVIL}, {}),
    "topic": captured("Metadata", 8, {"topics": [{"name": EVIL}]}, {}),
    "broker's host and rack": captured("Metadata", 8, {"topics": None}, {"brokers": [BROKER], "clusterId": EVIL}),
    "software's name": captured("ApiVersions", 3, SOFTWARE | {"clientSoftwareName": EVIL}, {}),
    "software's version": captured("ApiVersions", 3, SOFTWARE | {"clientSoftwareVersion": EVIL}, {}),
    "mechanism": captured("SaslHandshake", 1, {"mechanism": EVIL}, {"mechanisms": [EVIL]}),
    "transaction": captured("InitProducerId", 4, {"transactionalId": EVIL, "transactionTimeoutMs": 1}, {}),
    "end of a transaction": captured("EndTxn", 3, {"transactionalId": EVIL, "committed": True}, {}),
    "error message": captured("FindCoordinator", 3, {"key": EVIL}, {"errorMessage": EVIL, "host": EVIL}),
    "records": produced(),
    "client's address in a log": logged(connection=f"10.0.0.1:9092-10.0.0.7{EVIL}:51234-0-3"),
    "broker's address in a log": logged(connection=f"10.0.0.1{EVIL}:9092-10.0.0.7:51234-0-3"),
    "connection of a log that is none": logged(connection=EVIL),
    "client id in a log": log_line(exchange_fields(7, EVIL)).encode(),
    "software in a log": logged(clientInformation={"softwareName": EVIL, "softwareVersion": EVIL}),
    "group in a log": logged(request=exchange_fields(7)["request"] | {"groupId": EVIL}),
    "field of a log that is no number": logged(request=exchange_fields(7)["request"] | {"generationId": EVIL}),
    "field of a log that is not known": logged(request=exchange_fields(7)["request"] | {EVIL: EVIL}),
}


@pytest.mark.parametrize("named", ["a.pcap", f"{EVIL}.pcap"], ids=["plain name", "odd name"])
@pytest.mark.parametrize("field", FIELDS)
def test_text_from_the_wire_does_not_steer_the_terminal(cli: Cli, tmp_path: Path, field: str, named: str) -> None:
    path = tmp_path / named
    path.write_bytes(FIELDS[field])
    exchanges = rows(cli("read", str(path), "--json").out)
    assert {row["capture_uri"] for row in exchanges} == {str(path)}
    ways: list[list[str]] = [[], ["--stats"], ["--json"], ["--stats", "--json"]]
    more: tuple[list[str], ...] = ([], ["--full"], ["--records"], ["--records", "--json"])
    ways += [["--exchange", exchanges[-1]["exchange_id"], *flags] for flags in more]
    for way in ways:
        for columns in ("60", "200"):
            result = cli("read", str(path), *way, COLUMNS=columns)
            assert result.code == 0
            odd = {letter for letter in result.out + result.err if not letter.isprintable()} - {"\n"}
            assert not odd, (way, odd, result)
            if not way:
                assert len(result.out.splitlines()) == len(exchanges) + 1


def test_what_is_shown_keeps_the_letters_that_can_be(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(FIELDS["client's address in a log"].replace(b'"billing-1"', b"null"))
    assert f"10.0.0.7{NICE}:51234" in cli("read", str(path)).out


def test_json_has_the_text_of_the_wire_all_the_same(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(FIELDS["client id"])
    assert {row["client_id"] for row in read_json(cli, str(path))} == {EVIL}


@pytest.mark.parametrize("way", [[], ["--stats"], ["--json"]], ids=" ".join)
def test_a_file_name_does_not_steer_the_terminal(cli: Cli, tmp_path: Path, way: list[str]) -> None:
    """Where it appears: no such file, no recording, no Kafka, and what is wrong beside others."""
    plain, cut, text, gone = (tmp_path / f"{EVIL}{number}" for number in range(4))
    plain.write_bytes(pcap([]))
    cut.write_bytes(FIELDS["group"][:-9])
    text.write_bytes(b"hello")
    for files in ([gone], [text], [plain], [plain, cut, text, gone]):
        result = cli("read", *map(str, files), *way)
        assert not {letter for letter in result.err if not letter.isprintable()} - {"\n"}, result.err
        assert result.err.count("\n") <= 6
