"""The parts that the marts are built in: which marts each makes, how it is built, and what it reads."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafkascope.lake.home import Lake
from kafkascope.lake.marts import MART_CONNECTIONS
from kafkascope.lake.write.files import NewFile
from kafkascope.pipeline.mart import apis
from kafkascope.pipeline.mart.base.multi_writer import writer_of_several
from kafkascope.pipeline.mart.base.new_files import written
from kafkascope.pipeline.mart.base.settings import walks_at_once
from kafkascope.pipeline.mart.base.sources import Sources
from kafkascope.pipeline.mart.history import quorum, streams
from kafkascope.pipeline.mart.history.walks import QUORUM_WALK, STREAMS_WALK, writer
from kafkascope.pipeline.mart.increments.plan import Plan
from kafkascope.pipeline.mart.logs import build as logs
from kafkascope.pipeline.mart.names import facts, topics_and_groups
from kafkascope.pipeline.mart.names.brokers import clusters_of, write_brokers
from kafkascope.pipeline.mart.names.facts import LakeFacts
from kafkascope.pipeline.mart.share import events as share
from kafkascope.pipeline.mart.share import marts as share_marts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Build:
    """What every part is built with. `facts` waits for them; `replaced` gets tables with paths of files before the
    plan's start that new ones replace."""

    spark: "SparkSession"
    lake: Lake
    sources: Sources
    plan: Plan
    facts: Callable[[], LakeFacts]
    replaced: set[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Part:
    """`marts` are kept by segment, those of `whole` rebuilt each time. `goes_on` if the part keeps state to go on
    from; `needs` the tables that it reads, and the columns of each."""

    name: str
    marts: tuple[str, ...]
    write: Callable[[Build], list[NewFile]]
    needs: Mapping[str, str]
    whole: tuple[str, ...] = ()
    goes_on: bool = False
    # Whether it depends on the facts of the time before a checkpoint.
    walks: bool = False
    # Whether it depends on nothing but its tables.
    alone: bool = False

    @property
    def tables(self) -> tuple[str, ...]:
        return (*self.marts, *self.whole)


def _apis(build: Build) -> list[NewFile]:
    rows = apis.api_rows(build.spark, build.sources["exchanges"], build.plan, build.lake)
    return written(rows, writer_of_several(build.lake, build.plan))


def _names(build: Build) -> list[NewFile]:
    clusters, absent = clusters_of(build.facts()), build.sources.absent
    rows = topics_and_groups.topic_and_group_rows(build.spark, build.sources, absent, clusters, build.plan, build.lake)
    return [] if rows is None else written(rows, writer_of_several(build.lake, build.plan))


def _share(build: Build) -> list[NewFile]:
    walks = walks_at_once(build.spark, build.sources.bytes)
    return share_marts.write_share_marts(
        build.spark, build.lake, build.sources, build.plan, build.facts(), build.replaced, walks
    )


def _streams(build: Build) -> list[NewFile]:
    """What the events' broker shows isn't known before the facts."""
    events, kept = streams.streams_events(
        build.spark, build.sources, build.sources.absent, lambda: build.facts().clusters, build.plan, build.lake
    )
    return _walked(build, events, kept, STREAMS_WALK, "group_id", "cluster")


def _quorum(build: Build) -> list[NewFile]:
    events, kept = quorum.quorum_events(
        build.spark, build.sources, build.sources.absent, build.facts().clusters, build.plan, build.lake
    )
    return _walked(build, events, kept, QUORUM_WALK, "cluster_id")


def _walked(build: Build, events: Any, kept: Any, walk: Any, *keys: str) -> list[NewFile]:
    files = [] if events is None else written(events, writer(build.lake, build.plan, walk, keys, build.facts()))
    return files if kept is None else files + written(kept, writer_of_several(build.lake, build.plan))


def _logs(build: Build) -> list[NewFile]:
    return logs.log_rows(build.spark, build.lake, build.sources, build.plan)


def _brokers(build: Build) -> list[NewFile]:
    return write_brokers(build.lake, build.plan.prefix(build.plan.tail), build.facts())


def _needs_of(*needs: Mapping[str, str]) -> dict[str, str]:
    paths: dict[str, str] = {}
    for tables in needs:
        for name, more in tables.items():
            paths[name] = f"{paths.get(name, '')} {more}"
    return paths


FACTS = "facts"
# The first collects what the others need; its state is written with it.
MART_PARTS = (
    Part(FACTS, (), _brokers, facts.TABLES, whole=("brokers",), goes_on=True),
    Part("share", ("share_deliveries", "share_group_health"), _share, share.TABLES, goes_on=True, walks=True),
    Part(
        "apis", ("api_latency", "api_errors", "throttling", MART_CONNECTIONS), _apis, apis.TABLES,
        whole=("client_versions",), goes_on=True,
    ),
    Part(
        "streams", (), _streams, streams.TABLES,
        whole=(
            "streams_tasks", "streams_moves", "streams_unheld", "streams_lost_members", "streams_statuses",
            "streams_group_health",
        ),
        goes_on=True, walks=True,
    ),
    Part("quorum", ("quorum_replicas", "quorum_events"), _quorum, quorum.TABLES, goes_on=True, walks=True),
    Part(
        "logs", (), _logs, _needs_of(*logs.TABLES),
        whole=(
            "metadata_at", "partition_events", "group_offsets", "share_state", "open_transactions", "dead_groups",
            "compaction_waste", "log_health",
        ),
        alone=True,
    ),
    Part("names", (), _names, topics_and_groups.TABLES, whole=("topics", "groups"), goes_on=True),
)  # fmt: skip
