"""What a loss does to pairs: an answer that may be another's is nobody's."""

from tests.support.frames import Wire


def statuses(wire: Wire) -> list[str]:
    whole = [exchange.status for exchange in wire.exchanges()]
    assert sorted(exchange.status for exchange in wire.exchanges(step=1)) == sorted(whole)
    return whole


def with_requests(wire: Wire, count: int) -> Wire:
    """A client that has one correlation id."""
    for number in range(count):
        wire.ask("Heartbeat", 0, {"groupId": f"g{number}"}, correlation=0)
    return wire


def test_answer_after_a_loss_is_not_given_to_one_of_several_alike() -> None:
    wire = with_requests(Wire(), 2).lose(20, 1).answer("Heartbeat", 0, correlation=0)
    assert statuses(wire.end(1)) == ["unanswered", "unanswered", "answer_only"]


def test_doubt_goes_on_to_requests_behind() -> None:
    """Had the first of them been answered behind the loss, every answer would be one too early."""
    wire = with_requests(Wire(), 1).lose(20, 1)
    for _ in range(3):
        with_requests(wire, 1).answer("Heartbeat", 0, correlation=0)
    assert "answered" not in statuses(wire.end(1))


def test_lost_request_leaves_doubt_as_well() -> None:
    """The second of three answers is that of a request which is not there."""
    wire = with_requests(with_requests(Wire(), 1).lose(30, 0), 1)
    for _ in range(3):
        wire.answer("Heartbeat", 0, correlation=0)
    assert "answered" not in statuses(wire.end(1))


def test_loss_costs_no_pair_where_correlation_ids_differ() -> None:
    wire = Wire()
    for number in range(4):
        wire.ask("Heartbeat", 0, correlation=number)
    wire.lose(20, 1).lose(20, 0)
    for number in (1, 2, 3):
        wire.answer("Heartbeat", 0, correlation=number)
    assert statuses(wire.end(1)) == ["unanswered", "answered", "answered", "answered"]


def test_alike_requests_pair_in_order_without_a_loss() -> None:
    wire = with_requests(Wire(), 3)
    for _ in range(3):
        wire.answer("Heartbeat", 0, correlation=0)
    assert [exchange.groups for exchange in wire.exchanges()] == [("g0",), ("g1",), ("g2",)]
    assert statuses(wire) == ["answered"] * 3


def test_requests_that_come_out_behind_the_end_of_their_answers_are_paired() -> None:
    """A stream that lacks a packet is held back, and the other may end meanwhile."""
    wire = Wire()
    for number in range(4):
        wire.answer("Heartbeat", 0, correlation=number)
    wire.end(1).lose(20, 0)
    for number in (1, 2, 3):
        wire.ask("Heartbeat", 0, correlation=number)
    assert statuses(wire.end(0)) == ["answer_only", "answered", "answered", "answered"]


def test_answers_that_wait_at_the_end_of_the_requests_are_alone() -> None:
    wire = Wire().answer("Heartbeat", 0, correlation=7).end(0)
    assert statuses(wire.ask("Heartbeat", 0, correlation=7)) == ["answer_only", "unanswered"]


def test_requests_at_the_end_of_the_answers_are_not_answered() -> None:
    wire = Wire().ask("Heartbeat", 0, correlation=7).end(1)
    assert statuses(wire.answer("Heartbeat", 0, correlation=7)) == ["unanswered", "answer_only"]


def test_answers_alike_that_wait_for_requests_behind_a_loss_are_nobodys() -> None:
    """One of them is that of the request which was lost."""
    wire = Wire()
    for _ in range(3):
        wire.answer("Heartbeat", 0, correlation=0)
    wire = with_requests(wire.lose(20, 0), 2)
    for _ in range(3):
        with_requests(wire, 1).answer("Heartbeat", 0, correlation=0)
    assert "answered" not in statuses(wire.end(1))
