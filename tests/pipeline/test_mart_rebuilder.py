"""Marts of a folder that is followed: built when nothing waits, not too often, and not while files are read."""

from threading import Thread

from kafkascope.pipeline.mart_rebuilder import PATIENCE, MartRebuilder

EVERY = 60.0


class Made:
    """A clock that is set by hand."""

    def __init__(self, *, stale: bool = False) -> None:
        self.time = 1_000.0
        self.built: list[float] = []
        self.waits = False
        self.rebuilder = MartRebuilder(lambda: self.built.append(self.time), EVERY, stale=stale, now=lambda: self.time)

    def look(self, later: float = 0.0) -> int:
        self.time += later
        self.rebuilder.rebuild_if_due(lambda: self.waits)
        return len(self.built)


def test_nothing_is_built_until_something_has_landed() -> None:
    made = Made()
    assert made.look() == made.look(EVERY) == 0
    made.rebuilder.landed()
    assert made.look() == 1
    assert made.look(EVERY) == 1


def test_what_an_earlier_run_left_is_built_at_once() -> None:
    assert Made(stale=True).look() == 1


def test_batches_that_follow_each_other_are_built_together() -> None:
    made = Made()
    for _ in range(10):
        made.rebuilder.landed()
        made.look(EVERY / 10)
    assert len(made.built) == 1
    assert made.look(EVERY / 10) == 2


def test_while_files_wait_nothing_is_built_unless_they_always_do() -> None:
    made = Made()
    made.rebuilder.landed()
    made.waits = True
    assert made.look() == made.look((PATIENCE - 2) * EVERY) == 0
    assert made.look(EVERY) == 1


def test_while_a_batch_is_read_nothing_is_built() -> None:
    made = Made()
    made.rebuilder.landed()
    with made.rebuilder.busy:
        other = Thread(target=made.look)
        other.start()
        other.join()
        assert not made.built
    assert made.look() == 1


def test_the_end_builds_what_is_missing_and_no_more() -> None:
    made = Made()
    made.rebuilder.landed()
    made.look()
    made.rebuilder.finish()
    assert len(made.built) == 1
    made.rebuilder.landed()
    made.rebuilder.finish()
    made.rebuilder.finish()
    assert len(made.built) == 2
