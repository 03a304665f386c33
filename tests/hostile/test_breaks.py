"""Every file that broke the program once is read to its end, within a gigabyte, and what is wrong with it is told."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.breaks import BREAKS, plain_conversation
from tests.hostile.captures import PACKED
from tests.hostile.forged import FORGED, forged
from tests.hostile.supervise import Supervisor

SOAK = bool(os.environ.get("KAFKASCOPE_SOAK"))


@pytest.fixture(scope="module")
def supervisor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Supervisor]:
    made = Supervisor(tmp_path_factory.mktemp("breaks"))
    yield made
    made.close()


@pytest.mark.parametrize("large", [False, pytest.param(True, marks=pytest.mark.skipif(not SOAK, reason="make soak"))])
@pytest.mark.parametrize("name", BREAKS)
def test_what_broke_it_is_read_to_the_end(name: str, large: bool, supervisor: Supervisor, tmp_path: Path) -> None:
    known = BREAKS[name]
    size = known.large if large else known.small
    file = tmp_path / name.replace(" ", "-")
    file.write_bytes(known.make(size))
    tally = supervisor.run("breaks", file)
    assert not tally.failures, tally.failures[0]
    for what, least in known.holds(size).items():
        assert tally.outcomes[what] >= least, f"{tally.outcomes[what]} {what}, at least {least} were recorded"


@pytest.mark.parametrize("form", PACKED)
def test_a_packed_file_gives_its_memory_back(form: str, supervisor: Supervisor, tmp_path: Path) -> None:
    """zstd and lz4 kept 1.8 MB of each."""
    file = tmp_path / form
    file.write_bytes(PACKED[form](plain_conversation(3)))
    tally = supervisor.run("again", file)
    assert not tally.failures, tally.failures[0]


@pytest.mark.parametrize("name", FORGED)
def test_forged_state_is_refused_or_read(name: str, supervisor: Supervisor, tmp_path: Path) -> None:
    file = tmp_path / "state"
    file.write_bytes(forged(name))
    tally = supervisor.run("carried", file)
    assert not tally.failures, tally.failures[0]
