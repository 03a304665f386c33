"""Real answers of 4.3.1 brokers, from the recordings of the lab."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import kafkascope

CAPTURES = Path(__file__).parents[2] / "captures"


@cache
def answers(recording: str, node: int, api: str) -> tuple[Mapping[str, Any], ...]:
    """Answers to an API in one node's request log, in order."""
    log = str(CAPTURES / recording / f"request-{node}.log.xz")
    decoded = (exchange.response for exchange in kafkascope.read([log]) if exchange.api == api)
    return tuple(response.value for response in decoded if response is not None)
