"""Generates values of a layout by case number: the boundaries first, then random ones. Same case, same value."""

from random import Random
from typing import Any
from uuid import UUID

from kafkascope.schema.layouts.layout import Layout, LayoutField

_INTEGERS = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
}
# One theme per case before the random ones: each boundary occurs in every field of every message.
THEMES = ("default", "least", "most", "null", "empty", "bytes 127", "bytes 128", "text", "unknown tags")
_TEXTS = ("", "a", "orders", "Grüße", "日本語", "🦆 quack", "line\nbreak", '"quoted\\', "\u0000", "z" * 127, "z" * 128)


def sample(layout: Layout, case: int, seed: int = 20) -> dict[str, Any]:
    """Cases 0, 1, 2… go through `THEMES`, later ones are random."""
    random = Random(f"{layout.title} {layout.release} {case} {seed}")
    theme = THEMES[case] if case < len(THEMES) else "random"
    return _Make(layout, random, theme).struct(layout.fields, 0)


class _Make:
    def __init__(self, layout: Layout, random: Random, theme: str) -> None:
        self.layout = layout
        self.random = random
        self.theme = theme

    def struct(self, fields: tuple[LayoutField, ...], depth: int) -> dict[str, Any]:
        value = {field.name: self.field(field, depth) for field in fields}
        chance = 1.0 if self.theme == "unknown tags" else 0.0
        if self.layout.flexible and self.random.random() < chance:
            taken = {field.tag for field in fields}
            numbers = sorted({self.random.choice((3, 40, 127, 128, 70_000)) for _ in range(2)} - taken)
            sizes = (0, 1, 127, 128)
            tags = [{"tag": n, "data": self.random.randbytes(self.random.choice(sizes))} for n in numbers]
            if tags:
                value["_unknownTaggedFields"] = tags
        return value

    def field(self, field: LayoutField, depth: int) -> Any:
        if self.theme == "default" and not (field.default == "null" and not field.nullable):
            return field.default_value() if field.array or field.type != "struct" else self.element(field, depth)
        if field.nullable and self.random.random() < {"null": 1.0, "random": 0.2}.get(self.theme, 0.0):
            return None
        if field.tag is not None and self.theme == "random" and self.random.random() < 0.3:
            return field.default_value()
        if not field.array:
            return self.element(field, depth)
        # A wide tree of ten levels would never end: deeper levels get fewer children.
        most = 1 if depth > 2 else 3
        count = 0 if self.theme == "empty" else self.random.randint(0 if self.theme == "random" else 1, most)
        if field.type != "struct" and self.theme in ("bytes 127", "bytes 128"):
            count = int(self.theme[-3:]) - 1
        return [self.element(field, depth) for _ in range(count)]

    def element(self, field: LayoutField, depth: int) -> Any:
        random, theme = self.random, self.theme
        if field.type == "struct":
            return self.struct(field.fields, depth + 1)
        if field.type in _INTEGERS:
            least, most = _INTEGERS[field.type]
            return {"least": least, "most": most}.get(theme) or random.choice(
                (least, most, 0, 1, 127, random.randint(least, most), random.randint(0, 127))
            )
        if field.type == "bool":
            return theme == "most" or (theme != "least" and random.random() < 0.5)
        if field.type == "uuid":
            return UUID(bytes=bytes(16) if theme == "least" else random.randbytes(16))
        if field.type == "float64":
            return random.choice((0.0, -0.0, 1.5, -1e300, 5e-324, random.random()))
        size = {"empty": 0, "bytes 127": 127, "bytes 128": 128}.get(theme)
        if field.type == "string":
            if theme == "text":
                return random.choice(_TEXTS[3:])
            return random.choice(_TEXTS) if size is None else "s" * size
        return random.randbytes(random.choice((0, 1, 5, 127, 128)) if size is None else size)
