"""The share consumer for scripts: the same without asyncio. Heartbeats and requests go on in a thread of its own."""

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, TypeVar

from kafkascope.client.consumer.batch import ShareBatch, ShareRecord
from kafkascope.client.consumer.share_consumer import ShareConsumer, ShareMetrics, share_consumer
from kafkascope.client.settings import Address, Settings

T = TypeVar("T")


@contextmanager
def plain_share_consumer(
    settings: Settings | str | Address | Iterable[str | Address],
    *,
    group: str,
    topics: str | Iterable[str],
    **options: Any,
) -> Iterator["PlainShareConsumer"]:
    """As `share_consumer`. Functions among the options are called in the consumer's thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name=f"kafkascope consumes for {group}", daemon=True)
    thread.start()
    try:
        block = share_consumer(settings, group=group, topics=topics, **options)
        consumer = PlainShareConsumer(loop, _run(loop, block.__aenter__()))
        try:
            yield consumer
        except BaseException as error:
            _leave(loop, block, error)
            raise
        _leave(loop, block, None)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


class PlainShareConsumer:
    """Made by `plain_share_consumer`. Iterating it gives records; their methods are called without `await`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, consumer: ShareConsumer) -> None:
        self._loop, self._consumer = loop, consumer

    @property
    def group(self) -> str:
        return self._consumer.group

    @property
    def member_id(self) -> str:
        return self._consumer.member_id

    @property
    def member_epoch(self) -> int:
        return self._consumer.member_epoch

    @property
    def assignment(self) -> dict[str, tuple[int, ...]]:
        return self._consumer.assignment

    @property
    def metrics(self) -> ShareMetrics:
        return self._consumer.metrics

    def take(self, timeout: float | None = None) -> ShareBatch | None:
        return _run(self._loop, self._consumer.take(timeout))

    def batches(self) -> Iterator[ShareBatch]:
        while True:
            batch = self.take()
            assert batch is not None
            yield batch

    def __iter__(self) -> Iterator[ShareRecord]:
        for batch in self.batches():
            implicit, self._consumer._current = self._consumer.options.implicit, None
            for record in batch:
                yield record
                if implicit and record.acknowledged is None:
                    record.accept()

    def commit(self, timeout: float | None = None) -> None:
        _run(self._loop, self._consumer.commit(timeout))


def _run(loop: asyncio.AbstractEventLoop, call: Coroutine[Any, Any, T]) -> T:
    """Waits for it in this thread; Ctrl-C ends the waiting, and the call."""
    future = asyncio.run_coroutine_threadsafe(call, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def _leave(
    loop: asyncio.AbstractEventLoop, block: AbstractAsyncContextManager[ShareConsumer], error: BaseException | None
) -> None:
    """The block's own end, with the error that ended it."""
    if not isinstance(error, Exception):
        # Ctrl-C is this thread's: within the loop it would end the thread before it has left the group.
        _run(loop, block.__aexit__(None, None, None))
        return
    leaving = block.__aexit__(type(error), error, error.__traceback__)
    try:
        _run(loop, leaving)
    except BaseException as second:
        if second is not error:
            raise
