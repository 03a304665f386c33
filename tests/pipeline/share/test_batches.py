"""What a batch's offset keeps, how large it gets, and how tasks share it."""

import json
from uuid import UUID

import pytest

from kafkascope.client.share.holding import Holding
from kafkascope.client.share.member import ShareMember
from kafkascope.client.share.membership import Membership
from kafkascope.client.share.session import ShareSession
from kafkascope.client.share.values import Acquired, DeliveryId, FetchLimits, SharePartition
from kafkascope.errors import InputError
from kafkascope.limits import MAX_BATCH_RANGES
from kafkascope.pipeline.share.batch_offset import BatchOffset, LoggedRange, PartitionRanges, parse_offset
from kafkascope.pipeline.share.batches import Batches
from kafkascope.pipeline.share.options import parse_options
from kafkascope.pipeline.share.ranges import OffsetSet
from kafkascope.pipeline.share.tasks import cut

PARTITION = SharePartition(UUID(int=7), 3)
BATCH = BatchOffset(
    5,
    "member",
    1_700_000_000_000,
    (PartitionRanges("orders", PARTITION, 4, (LoggedRange(10, 19, 1, 30_000), LoggedRange(25, 25, 2, 29_000))),),
    (),
    {PARTITION: OffsetSet([(0, 4)])},
    {},
)


def test_an_offset_comes_back_from_its_json() -> None:
    text = json.dumps(BATCH.to_json())
    assert parse_offset(json.loads(text)) == BATCH
    assert json.dumps(parse_offset(json.loads(text)).to_json()) == text


@pytest.mark.parametrize("change", [{"version": 2}, {"batch": "5"}, {"records": [["orders"]]}, {"accept": None}])
def test_an_offset_of_something_else_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(InputError, match="checkpoint"):
        parse_offset({**BATCH.to_json(), **change})
    with pytest.raises(InputError, match="isn't a checkpoint of kafkascope-share"):
        parse_offset({"orders": {"0": 12}})


def test_a_batch_has_so_many_ranges_and_the_rest_waits() -> None:
    member = ShareMember(Membership("group", "member", ("orders",)), FetchLimits())
    member.names[PARTITION.topic_id] = "orders"
    session = member.sessions[1] = ShareSession(1, "group", "member")
    holding = session.holdings[PARTITION] = Holding(PARTITION)
    holding.acquire(
        (Acquired(2 * number, 2 * number, 1) for number in range(MAX_BATCH_RANGES + 1)), DeliveryId(1, 1), 100.0
    )
    start = BatchOffset(0, "member")
    batches = Batches(member, start, renews=True)
    first = batches.make(start, 10**9, 0.0, 0.0)
    assert first is not None and first.size == MAX_BATCH_RANGES
    batches.commit(first, 0.0, {}, {})
    second = batches.make(first, 10**9, 0.0, 0.0)
    assert second is not None and second.size == 1


@pytest.mark.parametrize(("minimum", "most", "sizes"), [(1, None, [11]), (4, None, [2, 3, 3, 3]), (1, 4, [3, 4, 4])])
def test_parts_are_equal_and_together_the_batch(minimum: int, most: int | None, sizes: list[int]) -> None:
    options = {"bootstrap": "b", "group": "g", "topics": "t", "minPartitions": str(minimum)}
    options |= {} if most is None else {"maxRecordsPerPartition": str(most)}
    parts = cut(BATCH.records, parse_options(options))
    assert [sum(part.size for part in entry.ranges) for entry in parts] == sizes
    offsets = [offset for entry in parts for part in entry.ranges for offset in range(part.first, part.last + 1)]
    assert offsets == [*range(10, 20), 25]


def test_more_parts_than_records_are_not_made() -> None:
    options = parse_options({"bootstrap": "b", "group": "g", "topics": "t", "minPartitions": "100"})
    assert len(cut(BATCH.records, options)) == 11
