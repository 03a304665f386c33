"""Divides the files of an ingest into tasks: captures by buckets of connections and stretches of them, request logs and
frames one task per file, log directories by splits."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Protocol

from kafkascope.capture.formats import CAPTURE
from kafkascope.lake.home import Lake
from kafkascope.lake.place import place_of
from kafkascope.pipeline.disks.splits import shared
from kafkascope.pipeline.ingestion.division import divided
from kafkascope.pipeline.ingestion.earlier_ingests import FileTimes, LakeCoverage, choose_resume, times_here
from kafkascope.pipeline.ingestion.inputs import InputFile
from kafkascope.pipeline.ingestion.pseudonyms import load_key, unseal
from kafkascope.pipeline.ingestion.state import LakeState
from kafkascope.pipeline.ingestion.survey import (
    BAD_FILE,
    LEAST_SAMPLE,
    SAMPLE_BATCHES,
    FileSurvey,
    survey_here,
)
from kafkascope.pipeline.ingestion.task import CAPTURES, LOGS, Task


class PlanOptions(Protocol):
    """The options that a plan depends on."""

    @property
    def contents(self) -> bool: ...

    @property
    def pseudonymise(self) -> bool: ...

    @property
    def plan(self) -> str: ...

    @property
    def kafka_ports(self) -> tuple[int, ...]: ...


AUTO, _BUCKETS, _SHUFFLE = "auto", "buckets", "shuffle"
# Fewer bytes than this don't justify a second task.
SMALL_INPUT_BYTES = 8 << 20
# With buckets every task reads all files. From a local disk that is cheaper than moving segments, up to about the size
# of the page cache; from an object store only for small ones.
_MAX_LOCAL_BYTES = 64 << 30
_MAX_REMOTE_BYTES = 2 << 30


def shuffles(inputs: Iterable[InputFile], plan: str) -> bool:
    """If segments are sent to the tasks of their connections."""
    if plan != AUTO:
        return plan == _SHUFFLE
    files = list(inputs)
    local = all(place_of(file.uri).local for file in files)
    return sum(file.size for file in files) > (_MAX_LOCAL_BYTES if local else _MAX_REMOTE_BYTES)


def make_plan(
    lake: Lake, ingest_id: str, inputs: Iterable[InputFile], state: LakeState, options: PlanOptions, cores: int,
    survey_files: Callable[[list[InputFile], int], list[FileSurvey]] = survey_here,
    read_times: Callable[[list[FileSurvey], LakeCoverage], list[FileTimes]] = times_here,
) -> tuple[list[Task], list[FileSurvey]]:  # fmt: skip
    """Returns tasks, and a survey of every file, as `survey_files` makes it. A file that can't be read has no task.
    `read_times` reads files that begin before what earlier ingests left."""
    every = list(inputs)
    files = [file for file in every if file.log is None]
    size = sum(file.size for file in files)
    most = 1 if size < SMALL_INPUT_BYTES else max(cores, 1)
    # For a shuffle, only what is read of each file anyway.
    least = 1 if shuffles(files, options.plan) else LEAST_SAMPLE
    sample = 0 if most == 1 else max(least, SAMPLE_BATCHES // max(len(files), 1))
    surveys = survey_files(files, sample) if files else []
    secret = load_key() if options.pseudonymise else None
    tasks: list[Task] = []
    captures = [survey for survey in surveys if survey.kind == CAPTURE]
    captures.sort(key=lambda capture: (capture.first_ns, capture.file.uri))
    if captures:
        resume, apart = choose_resume(state, captures, read_times)
        surveys = [replace(survey, apart=survey.file.uri in apart) for survey in surveys]
        division = divided(captures, most)
        skip = {capture.file.uri: capture.file.read_packets for capture in captures if capture.file.read_packets}
        uris = tuple(capture.file.uri for capture in captures)
        whole = Task(
            lake=lake.uri,
            ingest_id=ingest_id,
            number=0,
            kind=CAPTURES,
            uris=uris,
            buckets=len(division.stretches),
            placed=division.placed,
            carried=tuple(map(unseal, resume.carried)),
            follows=resume.follows,
            dropped=resume.dropped,
            unread=resume.unread,
            skip=skip,
            contents=options.contents,
            secret=secret,
            kafka_ports=options.kafka_ports,
        )
        shares = [(bucket, stretch) for bucket, each in enumerate(division.stretches) for stretch in each]
        tasks += [
            replace(whole, number=number, bucket=bucket, stretch=stretch)
            for number, (bucket, stretch) in enumerate(shares)
        ]
    for survey in surveys:
        if survey.kind not in (CAPTURE, BAD_FILE):
            file, number = survey.file, len(tasks)
            skip = {file.uri: file.read_packets} if file.read_packets else {}
            tasks.append(
                Task(
                    lake.uri,
                    ingest_id,
                    number,
                    survey.kind,
                    (file.uri,),
                    skip=skip,
                    contents=options.contents,
                    secret=secret,
                )
            )
    logs = [file for file in every if file.log is not None]
    whole = Task(lake.uri, ingest_id, 0, LOGS, (), contents=options.contents, secret=secret)
    for splits in shared([file.log for file in logs if file.log is not None], state.known_logs, cores):
        uris = tuple(dict.fromkeys(split.input.uri for split in splits))
        tasks.append(replace(whole, number=len(tasks), uris=uris, splits=splits))
    return tasks, [*surveys, *(FileSurvey(file, file.kind) for file in logs)]
