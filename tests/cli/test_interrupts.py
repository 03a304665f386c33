"""Ctrl-C while Spark works: the first one asks, the second one cuts off what may be left."""

import os
import signal

import pytest

from kafkascope.cli.spark.interrupts import StopRequest, after_interrupt, one_interrupt


@pytest.fixture(autouse=True)
def handler() -> None:
    """A shell that runs the tests in the background makes all below it deaf to Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_a_stop_cuts_nothing_off_however_often_it_is_said() -> None:
    stop = StopRequest()
    with stop.listening():
        assert not stop.requested.is_set()
        press()
        press()
        assert stop.requested.is_set()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_may_be_left_is_cut_off_by_the_second() -> None:
    stop = StopRequest()
    with stop.listening():
        with stop.abandonable():
            press()
            assert stop.requested.is_set()
            with pytest.raises(KeyboardInterrupt):
                press()
        press()


def test_what_may_be_left_and_begins_after_the_first_is_cut_off_by_the_next() -> None:
    stop = StopRequest()
    with stop.listening():
        press()
        with pytest.raises(KeyboardInterrupt), stop.abandonable():
            press()


def test_after_one_interrupt_the_tidying_is_left_alone() -> None:
    with one_interrupt():
        with pytest.raises(KeyboardInterrupt):
            press()
        press()


def cut_off() -> None:
    try:
        raise KeyboardInterrupt
    finally:
        raise OSError("the answer is empty")


def test_an_error_that_a_cut_link_gives_is_the_interrupt() -> None:
    with pytest.raises(OSError, match="empty") as raised:
        cut_off()
    assert after_interrupt(raised.value)
    assert not after_interrupt(OSError("no space left"))
