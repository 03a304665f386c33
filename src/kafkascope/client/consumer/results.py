"""Reports acknowledgements that didn't count, as values and as the error that is raised for them."""

from collections.abc import Sequence
from dataclasses import dataclass

from kafkascope.client.share.values import UNKNOWN_OUTCOMES, Acknowledge, AcknowledgeResult
from kafkascope.errors import AcknowledgeError

# That an error lists; it counts the rest.
_MOST_LISTED = 3


@dataclass(frozen=True, slots=True)
class Refused:
    """Offsets whose acknowledgement didn't count. `code` is Kafka's error code, or negative where no broker returned
    one; `unknown` means that it may have counted."""

    topic: str
    partition: int
    first_offset: int
    last_offset: int
    type: str
    code: int
    reason: str
    unknown: bool

    @property
    def records(self) -> int:
        return self.last_offset - self.first_offset + 1

    def __str__(self) -> str:
        offsets = f"{self.first_offset}" if self.records == 1 else f"{self.first_offset}-{self.last_offset}"
        unknown = "may not have counted" if self.unknown else "didn't count"
        return f"{self.topic}-{self.partition} offset {offsets}: {self.type} {unknown}: {self.reason}"


def refused(result: AcknowledgeResult, topic: str) -> Refused:
    return Refused(
        topic,
        result.partition.partition,
        result.first,
        result.last,
        Acknowledge(result.type).name.lower(),
        result.code,
        result.reason,
        unknown=result.sent and result.code in UNKNOWN_OUTCOMES,
    )


def acknowledge_error(parts: Sequence[Refused]) -> AcknowledgeError:
    more = f" (and {len(parts) - _MOST_LISTED} more ranges)" if len(parts) > _MOST_LISTED else ""
    message = "; ".join(map(str, parts[:_MOST_LISTED])) + more
    return AcknowledgeError(message, parts[0].code, tuple(parts))
