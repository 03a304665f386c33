"""What a recipe is, and what several of them do."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lab.stage import Stage


@dataclass(frozen=True, slots=True)
class Recipe:
    """`cluster` are the arguments of `Cluster`. With `whole` the recording begins before the first node does."""

    tells: str
    play: Callable[[Stage], None]
    cluster: Mapping[str, Any] = field(default_factory=dict)
    whole: bool = False
    nanoseconds: bool = False


def produce(stage: Stage, who: str, topic: str, count: int) -> None:
    options = {"role": "produce", "topic": topic, "count": str(count), "kafka.batch.size": "400"}
    stage.java("Client", who, options).finish()


def settled(event: dict[str, Any], partitions: int) -> bool:
    """No partition has lag, the second figure of each; the start offset, the first, may trail for long."""
    lag = event.get("startOffsetAndLag", {})
    return len(lag) == partitions and all(figures is not None and figures[1] == 0 for figures in lag.values())
