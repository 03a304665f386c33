"""The list of formats: what it names is there, and a line more is all that another format takes."""

from io import BytesIO
from pathlib import Path

import pytest

from kafkascope.capture import formats
from kafkascope.capture.files.pcap import PcapReader
from kafkascope.capture.formats import CAPTURE, FILE_COMPRESSIONS, FORMATS, Format, looks_recorded
from kafkascope.capture.reader import read
from kafkascope.pipeline.ingestion.inputs import find_inputs
from kafkascope.pipeline.ingestion.survey import survey_file
from tests.captures import capture

TOY = b"TOY!"


class ToyReader(PcapReader):
    """A pcap file behind four bytes."""

    def index(self, data, position, base, final):  # type: ignore[no-untyped-def]
        return super().index(data, max(position, len(TOY)) if base == 0 else position, base, final)


def test_every_reader_and_opener_is_there() -> None:
    assert all(callable(each.load()) for each in (*FORMATS, *FILE_COMPRESSIONS))


def test_no_start_belongs_to_two() -> None:
    starts = [start for each in (*FORMATS, *FILE_COMPRESSIONS) for start in each.starts]
    assert not [start for start in starts if sum(other.startswith(start) for other in starts) > 1]


def test_a_format_is_a_reader_and_a_line_of_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pcap = capture("clients")
    recording = tmp_path / "recording"
    recording.write_bytes(TOY + pcap)
    assert not looks_recorded(TOY + pcap)
    toy = Format("toy", CAPTURE, f"{__name__}:{ToyReader.__name__}", (TOY,))
    monkeypatch.setattr(formats, "FORMATS", (*FORMATS, toy))
    assert looks_recorded(TOY + pcap)
    whole = {exchange.exchange_id for exchange in read(BytesIO(pcap))}
    assert {exchange.exchange_id for exchange in read(recording)} == whole != set()
    assert [survey_file(file, sample=0).kind for file in find_inputs([recording])] == [CAPTURE]
