"""What each file of a recording has, though connections go from one to the next."""

from dataclasses import fields
from io import BytesIO

import pytest

from kafkascope.capture.exchanges.file_tally import FileTally
from kafkascope.capture.reader import Reading
from kafkascope.capture.resume.run import Part
from kafkascope.capture.resume.state import Carried
from tests.captures import NAMES, capture
from tests.support.packet_build import Talk, pcap
from tests.support.parts import Named, random_cut
from tests.support.traffic import produce, request, response

HELLO = bytes.fromhex("1603010010010000 0c0303") + bytes(9)


def read(files: list[Named]) -> Reading:
    reading = Reading(files)
    list(reading.batches())
    return reading


def talked(broken: bool) -> tuple[list[tuple[int, bytes]], int]:
    """A connection's packets, and from where on it says its second half."""
    talk = Talk(segment_bytes=1_000).open()
    talk.say(0, request("ApiVersions", 3, 1)).say(1, response("ApiVersions", 3, 1))
    talk.say(0, produce(2, 5_000)).say(1, response("Produce", 9, 2))
    lost = next(at for at, (_, packet) in enumerate(talk.packets) if len(packet) > 900)
    middle = len(talk.packets)
    talk.say(0, request("Heartbeat", 4, 3)).say(1, response("Heartbeat", 4, 3)).close()
    packets = [packet for at, packet in enumerate(talk.packets) if not broken or at != lost + 1]
    return packets, middle - broken


def test_losses_are_of_the_file_that_lacks_the_packets() -> None:
    packets, middle = talked(broken=True)
    reading = read([Named(pcap(packets[:middle]), "one"), Named(pcap(packets[middle:]), "two")])
    first, second = reading.by_file()["one"], reading.by_file()["two"]
    assert first.lost_places == 1 and first.lost_bytes > 1_000
    assert (second.lost_places, second.lost_bytes) == (0, 0)
    # The second request has a hole; its header is there.
    assert (first.frames, second.frames) == (4, 2)
    assert (first.packets, second.packets) == (middle, len(packets) - middle)
    assert first.last_ns is not None and first.last_ns == packets[middle - 1][0]
    assert (second.first_ns, second.last_ns) == (packets[middle][0], packets[-1][0])


def test_encrypted_bytes_are_of_the_file_that_has_them() -> None:
    packets, _ = talked(broken=False)
    hidden = Talk(client=("10.0.0.1", 40_001), time_ns=packets[-1][0]).open().say(0, HELLO[:4])
    begun = len(hidden.packets)
    hidden.say(0, HELLO[4:]).say(1, HELLO)
    files = [Named(pcap([*packets, *hidden.packets[:begun]]), "one"), Named(pcap(hidden.packets[begun:]), "two")]
    first, second = read(files).by_file().values()
    # Four bytes do not tell yet what it is.
    assert (first.tls_bytes, second.tls_bytes) == (4, 2 * len(HELLO) - 4)
    assert second.tcp_bytes == second.tls_bytes and first.tcp_bytes > first.tls_bytes


@pytest.mark.parametrize("name", NAMES)
def test_files_together_are_the_recording(name: str) -> None:
    reading = read([Named(content, str(first)) for first, content in random_cut(capture(name), 5, 3)])
    total = FileTally()
    for tally in reading.by_file().values():
        total.add(tally)
    account, protocols = reading.account, reading.account.protocols()
    expected = FileTally(
        account.packets, 0, account.frames, account.lost_bytes, account.lost_places,
        protocols.get("tls", (0, 0))[1], sum(size for _, size in protocols.values()), account.first_ns, account.last_ns,
    )  # fmt: skip
    assert total == expected


@pytest.mark.parametrize("name", ["share", "clients"])
def test_a_later_run_counts_its_own_bytes(name: str) -> None:
    files = [Named(content, str(first)) for first, content in random_cut(capture(name), 2, 5)]
    whole = read(files).by_file()
    contents = {file.name: file.getvalue() for file in files}
    tallies: dict[str, FileTally] = {}
    carried: list[Carried] = []
    for file in files:
        part = Part(carried=carried, last=file is files[-1], reopen=lambda uri: BytesIO(contents[uri]))
        reading = Reading(Named(contents[file.name], file.name), part=part)
        list(reading.batches())
        tallies |= reading.by_file()
        carried = reading.carried
    for field in fields(FileTally):
        if field.name != "frames":
            assert [getattr(tally, field.name) for tally in tallies.values()] == [
                getattr(tally, field.name) for tally in whole.values()
            ], field.name
    # One that began in the first file and is whole in the second counts there.
    assert sum(tally.frames for tally in tallies.values()) == sum(tally.frames for tally in whole.values())
