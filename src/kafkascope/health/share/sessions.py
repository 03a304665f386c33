"""Applies `session`, `linked`, `forgotten` and `disconnected` events of a share group: everything that a member held on
a broker ends.

Epoch −1 and the end of the connection that opened the session release what the member holds on the session's
partitions. Epoch 0 makes a new session and releases nothing: the member keeps its locks and may acknowledge, and the
end of the older connection no longer counts (SharePartitionManager.newContext, ShareSessionCache.remove, the same in
4.1 to 4.3).
"""

from kafkascope.health.share.book import CROSSED_US, LATE_US, Book, Link
from kafkascope.health.share.events import Outcome, ShareEvent

SHARE_SESSION_NOT_FOUND = 122
_SHARE_SESSION_LIMIT_REACHED = 133


def session(book: Book, event: ShareEvent) -> None:
    link = (event.member_id, event.broker)
    error, epoch = event.error_code, event.value
    if error == SHARE_SESSION_NOT_FOUND:
        _released(book, link, "moved", "session_evicted", event)
    elif epoch == -1 and not error:
        _released(book, link, "session_closed", "session_closed", event, None if error == 0 else "close_unanswered")
    elif epoch == 0 and not error:
        opened(book, link, event.connection_id)
        book.forgotten.pop(link, None)
    elif epoch == 0 and error == _SHARE_SESSION_LIMIT_REACHED:
        # The older session is removed before a place is searched for the new one.
        book.sessions.pop(link, None)


def linked(book: Book, event: ShareEvent) -> None:
    """The member acquired over this connection, of whatever partition."""
    link = (event.member_id, event.broker)
    if book.sessions.get(link) != event.connection_id:
        opened(book, link, event.connection_id)


def opened(book: Book, link: Link, connection: str | None) -> None:
    book.sessions[link] = connection
    if connection is not None:
        book.sessions_of.setdefault(connection, {})[link] = None


def forgotten(book: Book, event: ShareEvent) -> None:
    """A partition that left the session isn't released with it."""
    book.forgotten.setdefault((event.member_id, event.broker), set()).add(book.partition_of(event))


def disconnected(book: Book, event: ShareEvent) -> None:
    connection = event.connection_id
    if connection is None:
        return
    closed = book.closed
    while closed and event.at_us - closed[oldest := next(iter(closed))] > CROSSED_US:
        del closed[oldest]
    closed.pop(connection, None)
    closed[connection] = event.at_us
    for link in book.sessions_of.pop(connection, ()):
        if book.sessions.get(link) == connection:
            _released(book, link, "disconnected", "connection_closed", event)


def _released(book: Book, link: Link, outcome: Outcome, rule: str, event: ShareEvent, note: str | None = None) -> None:
    member, broker = link
    book.sessions.pop(link, None)
    left = book.forgotten.pop(link, ())
    touched = book.touched.get(member, {})
    for partition in list(touched):
        if partition in left:
            continue
        if partition.links.get(member, ("", ""))[0] == broker:
            del partition.links[member]
        for piece in partition.pieces[:]:
            if piece.outcome is None and piece.origin.member_id == member and piece.origin.broker == broker:
                book.end(partition, piece, outcome, rule, event.at_us, event.exchange_id, note)
        for piece in partition.limbo[:]:
            # It was redelivered a moment before what explains it.
            late = event.at_us - (piece.outcome_at or 0) <= LATE_US
            if late and piece.origin.member_id == member and piece.origin.broker == broker:
                partition.limbo.remove(piece)
                piece.end(outcome, rule, event.at_us, event.exchange_id, note)
                book.settled(piece)
        # Members that are gone leave nothing, or state would grow with the age of a lake.
        if member not in partition.links and not partition.has_of(member):
            del touched[partition]
    if not touched:
        book.touched.pop(member, None)
