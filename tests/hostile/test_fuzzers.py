"""Whatever bytes it is given, kafkascope reads them, says what is wrong with them, or refuses them: no signal, no
traceback, no bound broken.

A failure prints its seed: `KAFKASCOPE_SEED=… pytest tests/hostile/test_fuzzers.py` makes the same cases again, and
`python -m tests.hostile.worker . FILE` runs the one that it saved."""

import os
import random
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.hostile import supervise
from tests.hostile.kinds import KINDS
from tests.hostile.probes import BEHAVIOURS
from tests.hostile.supervise import Supervisor
from tests.hostile.worker import FAILED, unit_of
from tests.support.cli import process

SOAK = bool(os.environ.get("KAFKASCOPE_SOAK"))
SEED = int(os.environ.get("KAFKASCOPE_SEED", 0)) or (random.randrange(1 << 32) if SOAK else 15)
CASES = 500
# 100,000 recordings of all kinds together, and 1,000,000 frames.
SOAK_CASES = {
    "captures": 60_000, "pcapng": 14_000, "fragments": 14_000, "logs": 6_000, "carried": 6_000, "frames": 900_000,
    "batches": 100_000,
}  # fmt: skip
# So that parallel workers share a long run.
SHARDS = 10 if SOAK else 1
SAMPLED = 25 if SOAK else 3


@pytest.fixture(scope="module")
def supervisor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Supervisor]:
    made = Supervisor(tmp_path_factory.mktemp("hostile"))
    yield made
    made.close()


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("kind", KINDS)
def test_no_signal_no_traceback_no_bound_broken(
    kind: str, shard: int, supervisor: Supervisor, record_property: Callable[[str, object], None]
) -> None:
    units = (SOAK_CASES[kind] if SOAK else CASES) // KINDS[kind].cases // SHARDS
    tally = supervisor.fuzz(kind, SEED, shard * units, (shard + 1) * units)
    measured = f"hostile {kind}, KAFKASCOPE_SEED={SEED}: {tally}"
    print(measured)
    record_property("measured", measured)
    assert not tally.failures, "\n".join([measured, *tally.failures[:5]])
    assert tally.outcomes.total() == units * KINDS[kind].cases


def test_the_command_line_reads_them_too(tmp_path: Path) -> None:
    """A process of its own: the exit code of a reading or of a refusal, and one line for each file that is none."""
    files = []
    for kind in (name for name, known in KINDS.items() if known.is_recording):
        for number in range(SAMPLED):
            files.append(tmp_path / f"{kind}-{SEED}-{number}")
            files[-1].write_bytes(unit_of(kind, SEED, number))
    done = process("read", *map(str, files), timeout=600)
    assert done.returncode in (0, 3), f"KAFKASCOPE_SEED={SEED}, exit code {done.returncode}: {done.stderr[-2_000:]!r}"
    assert b"Traceback" not in done.stderr + done.stdout, f"KAFKASCOPE_SEED={SEED}: {done.stderr[-2_000:]!r}"


def test_the_same_seed_makes_the_same_cases() -> None:
    for kind in KINDS:
        first, again = (zlib.crc32(b"".join(unit_of(kind, 3, number) for number in range(4))) for _ in range(2))
        assert first == again != zlib.crc32(b"".join(unit_of(kind, 4, number) for number in range(4))), kind


def test_every_misbehaviour_is_noticed_and_costs_one_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Signals, errors, a hang and too much memory; each with the bytes that did it."""
    supervisor = Supervisor(tmp_path)
    try:
        for name in BEHAVIOURS:
            # The second: the worker has started by then, so that it is the case alone that takes too long.
            monkeypatch.setattr(supervise, "START_S", 3.0 if name == "no end" else 1_200.0)
            file = tmp_path / "file"
            file.write_bytes(name.encode())
            tally = supervisor.run("probes", file)
            if name == "fine":
                assert tally.outcomes == {"fine": 1}
                continue
            assert tally.outcomes == {FAILED: 1}, name
            (failure,) = tally.failures
            path, _, what = failure.partition(": ")
            assert name in what and Path(path).read_bytes() == name.encode()
    finally:
        supervisor.close()
