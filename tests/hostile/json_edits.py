"""A JSON value and a random source in, a relative of it out: other types, numbers past every boundary, members lost,
doubled, nested deep, texts that no encoding has."""

from random import Random
from typing import Any

NUMBERS = (
    0, 1, -1, 2, 4, 5, 127, 128, 255, 256, 32_767, 32_768, 65_535, 65_536, 2**20, 2**24, 2**31 - 1, 2**31, -(2**31),
    2**32 - 1, 2**32, 2**40, 2**53, 2**61, 2**62, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**30,
)  # fmt: skip
_TEXTS = ("", "\x00", "\ud800", "é" * 40_000, "a" * 70_000, "\u202e", "1", "AAAA", "::1", "NaN", "unknown")


def odd_value(random: Random) -> Any:
    return random.choice(
        (None, True, [], {}, [[]], {"a": []}, 1.5, float("inf"), float("nan"), 1e300, _deep(random.choice((3, 200))),
         random.choice(_TEXTS), random.choice(NUMBERS), random.choice(NUMBERS), -random.choice(NUMBERS)),
    )  # fmt: skip


def _deep(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


def places(value: Any, limit: int = 4_000) -> list[tuple[Any, Any]]:
    """(container, key) of every value in it."""
    entries: list[tuple[Any, Any]] = []
    waiting = [value] if isinstance(value, dict | list) else []
    while waiting and len(entries) < limit:
        holder = waiting.pop()
        items = holder.items() if isinstance(holder, dict) else enumerate(holder)
        for key, held in list(items):
            entries.append((holder, key))
            if isinstance(held, dict | list) and held:
                waiting.append(held)
    return entries


def edit(value: Any, random: Random) -> None:
    """One change in place. Numbers mostly stay numbers: what is of another type is refused soon."""
    known = places(value)
    if not known:
        return
    holder, key = random.choice(known)
    held = holder[key]
    if isinstance(held, int) and random.random() < 0.8:
        holder[key] = random.choice(
            (random.choice(NUMBERS), -random.choice(NUMBERS), held + random.choice((-1, 1, 2, 8, -8, 1000, 2**20)),
             held * random.choice((2, -1, 1 << 20)), _number_beside(known, random)),
        )  # fmt: skip
    elif isinstance(held, list) and held and random.random() < 0.7:
        _edit_list(held, random)
    elif isinstance(held, str) and random.random() < 0.6:
        holder[key] = _text(held, random)
    elif isinstance(holder, dict) and random.random() < 0.3:
        del holder[key]
    else:
        holder[key] = odd_value(random)


def _number_beside(known: list[tuple[Any, Any]], random: Random) -> Any:
    """What another place of the same value says."""
    holder, key = random.choice(known)
    return holder[key] if isinstance(holder[key], int) else 0


def _edit_list(held: list[Any], random: Random) -> None:
    at = random.randrange(len(held))
    kind = random.randrange(5)
    if kind == 0:
        del held[at]
    elif kind == 1:
        held.insert(at, held[random.randrange(len(held))])
    elif kind == 2:
        held[at] = odd_value(random)
    elif kind == 3:
        held *= random.choice((2, 3, 40)) if len(held) < 200 else 1
    else:
        random.shuffle(held)


def _text(held: str, random: Random) -> str:
    at = random.randint(0, len(held))
    return random.choice((held[:at], held[at:], held[:at] + random.choice(_TEXTS) + held[at:], random.choice(_TEXTS)))
