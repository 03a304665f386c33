"""`kafkascope serve`: the socket that it listens on. Pages and refusals are tested with the explorer."""

import socket

import pytest

from kafkascope.cli.serve_run import _listen
from kafkascope.errors import ReachError


def test_an_answer_waits_for_no_acknowledgement_of_its_head() -> None:
    with _listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        connection, _ = listening.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_port_that_is_taken_is_said_in_one_line() -> None:
    with _listen("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        with pytest.raises(ReachError, match=f"cannot listen on 127.0.0.1:{port}: address already in use"):
            _listen("127.0.0.1", port)
