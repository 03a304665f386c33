"""Makes of a response one that no broker means, though every number of it fits its field."""

import copy
import random
from typing import Any
from uuid import UUID

from tests.client.share.broker_model import TOPIC


def mangled(value: Any, chance: random.Random) -> Any:
    """The value with some numbers, lists and ids replaced by those that no broker means."""
    if isinstance(value, dict):
        return {name: mangled(item, chance) for name, item in value.items()}
    if isinstance(value, list):
        items = [mangled(item, chance) for item in value]
        if items and chance.random() < 0.2:
            items += [copy.deepcopy(chance.choice(items))]
        return items[1:] if items and chance.random() < 0.1 else items
    if isinstance(value, bool) or chance.random() > 0.15:
        return value
    if isinstance(value, int):
        return chance.choice((-1, 0, 1, 7, 2**31 - 1, 2**63 - 1, -(2**63), value + 1, value - 1, 121, 6))
    if isinstance(value, UUID):
        return chance.choice((UUID(int=0), UUID(int=1), TOPIC))
    return value


def fitted(value: Any, bits: int = 64) -> Any:
    """As a decoder gives numbers: within the type of their field."""
    if isinstance(value, dict):
        return {name: fitted(item, _BITS.get(name, 32)) for name, item in value.items()}
    if isinstance(value, list):
        return [fitted(item, bits) for item in value]
    if isinstance(value, int) and not isinstance(value, bool):
        low, high = -(1 << bits - 1), (1 << bits - 1) - 1
        return min(max(value, low), high)
    return value


_BITS = {
    "firstOffset": 64,
    "lastOffset": 64,
    "deliveryCount": 16,
    "errorCode": 16,
    "acknowledgeErrorCode": 16,
}
