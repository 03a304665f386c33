"""Files of an ingest in, its tasks out: captures by buckets of connections, logs and frames a task each."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Protocol

from kafkascope.capture.formats import CAPTURE
from kafkascope.lake.home import Lake
from kafkascope.lake.place import place_of
from kafkascope.pipeline.ingestion.earlier_ingests import Known, Times, gone_on_from, times_here
from kafkascope.pipeline.ingestion.inputs import Found
from kafkascope.pipeline.ingestion.pseudonyms import key, unsealed
from kafkascope.pipeline.ingestion.state import State
from kafkascope.pipeline.ingestion.survey import BAD, LEAST_SAMPLE, SAMPLE_BATCHES, Surveyed, balanced, survey_here
from kafkascope.pipeline.ingestion.task import CAPTURES, Task


class Wanted(Protocol):
    """What a plan needs of the options."""

    @property
    def contents(self) -> bool: ...

    @property
    def pseudonymise(self) -> bool: ...

    @property
    def plan(self) -> str: ...

    @property
    def kafka_ports(self) -> tuple[int, ...]: ...


AUTO, BUCKETS, SHUFFLE = "auto", "buckets", "shuffle"
# Fewer bytes than this are not worth a second task.
SMALL_BYTES = 8 << 20
# With buckets every task reads all files: from a disk of its own machine that is cheaper than moving segments about, up
# to what its page cache and its patience hold; from an object store not for long.
MOST_LOCAL_BYTES = 64 << 30
MOST_REMOTE_BYTES = 2 << 30


def shuffles(found: Iterable[Found], wanted: str) -> bool:
    """Whether segments are to move to the tasks of their connections."""
    if wanted != AUTO:
        return wanted == SHUFFLE
    files = list(found)
    local = all(place_of(one.uri).local for one in files)
    return sum(one.size for one in files) > (MOST_LOCAL_BYTES if local else MOST_REMOTE_BYTES)


def make_plan(
    lake: Lake, ingest_id: str, found: Iterable[Found], before: State, options: Wanted, cores: int,
    look: Callable[[list[Found], int], list[Surveyed]] = survey_here,
    look_at_times: Callable[[list[Surveyed], Known], list[Times]] = times_here,
) -> tuple[list[Task], list[Surveyed]]:  # fmt: skip
    """Tasks, and what every file is, as `look` finds out. A file that cannot be read has no task. `look_at_times` reads
    files that begin before what earlier ingests left."""
    files = list(found)
    size = sum(one.size for one in files)
    buckets = 1 if size < SMALL_BYTES else max(cores, 1)
    # Of many files a little each: the driver alone looks at them. The shuffle is for more than it should look at.
    least = 0 if shuffles(files, options.plan) else LEAST_SAMPLE
    sample = 0 if buckets == 1 else max(least, SAMPLE_BATCHES // max(len(files), 1))
    surveyed = look(files, sample)
    secret = key() if options.pseudonymise else None
    tasks: list[Task] = []
    captures = sorted((one for one in surveyed if one.kind == CAPTURE), key=lambda one: (one.first_ns, one.found.uri))
    if captures:
        going_on, apart = gone_on_from(before, captures, look_at_times)
        surveyed = [replace(one, apart=one.found.uri in apart) for one in surveyed]
        placed = balanced(captures, buckets) if sample else {}
        skip = {one.found.uri: one.found.read_packets for one in captures if one.found.read_packets}
        uris = tuple(one.found.uri for one in captures)
        whole = Task(
            lake=lake.uri,
            ingest_id=ingest_id,
            number=0,
            kind=CAPTURES,
            uris=uris,
            buckets=buckets,
            placed=placed,
            carried=tuple(map(unsealed, going_on.carried)),
            follows=going_on.follows,
            dropped=going_on.dropped,
            unread=going_on.unread,
            skip=skip,
            contents=options.contents,
            secret=secret,
            kafka_ports=options.kafka_ports,
        )
        tasks += [replace(whole, number=bucket, bucket=bucket) for bucket in range(buckets)]
    for one in surveyed:
        if one.kind not in (CAPTURE, BAD):
            number, uris = len(tasks), (one.found.uri,)
            skip = {one.found.uri: one.found.read_packets} if one.found.read_packets else {}
            tasks.append(
                Task(lake.uri, ingest_id, number, one.kind, uris, skip=skip, contents=options.contents, secret=secret)
            )
    return tasks, surveyed
