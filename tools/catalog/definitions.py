"""Parses Kafka's definition files, JSON with comments, and the oddities of all releases in them."""

import json
import re
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

_PRIMITIVES = frozenset(
    "bool int8 int16 uint16 int32 uint32 int64 float64 string bytes records uuid varint varlong".split()
)
KINDS = {
    "request": "request",
    "response": "response",
    "header": "header",
    "data": "data",
    "metadata": "metadata",
    "coordinator-key": "key",
    "coordinator-value": "value",
}


@dataclass(slots=True)
class FieldDefinition:
    name: str
    type: str
    versions: str
    nullable: str | None = None
    tag: int | None = None
    tagged: str | None = None
    default: str | None = None
    entity: str | None = None
    map_key: bool = False
    ignorable: bool = False
    classic: bool = False
    fields: list["FieldDefinition"] = field(default_factory=list)

    @property
    def is_struct(self) -> bool:
        return self.type.removeprefix("[]") not in _PRIMITIVES


@dataclass(slots=True)
class ListedError:
    """One line of a `Supported errors` comment."""

    name: str
    versions: str
    fields: tuple[str, ...]


@dataclass(slots=True)
class Definition:
    name: str
    kind: str
    api_key: int | None
    listeners: tuple[str, ...]
    valid: str
    flexible: str | None
    unstable: bool
    deprecated: str | None
    fields: list[FieldDefinition]
    kips: dict[int, list[int]]
    errors: list[ListedError]


def parse(text: str) -> Definition:
    """One definition file. Text after the JSON's end is dropped: 2.8's DescribeProducersRequest has some."""
    data, _ = json.JSONDecoder().raw_decode(_strip(text).strip())
    structs = {struct["name"]: struct["fields"] for struct in data.get("commonStructs", [])}
    comments = re.findall(r"^\s*//(.*)$", text[text.index("{") :], re.MULTILINE)
    return Definition(
        name=data["name"],
        kind=KINDS[data["type"]],
        api_key=data.get("apiKey"),
        listeners=tuple(data.get("listeners", ())),
        valid=data["validVersions"],
        flexible=data.get("flexibleVersions"),
        unstable=bool(data.get("latestVersionUnstable", False)),
        deprecated=data.get("deprecatedVersions"),
        fields=[_field(item, structs, ()) for item in data.get("fields", [])],
        kips=_kips(comments),
        errors=_errors(comments),
    )


def _strip(text: str) -> str:
    """Without `//` comments (strings may hold `//`) and without trailing commas (SubscriptionInfoData has one)."""
    kept = re.sub(r'("(?:[^"\\]|\\.)*")|//[^\n]*', lambda match: match.group(1) or "", text)
    return re.sub(r'("(?:[^"\\]|\\.)*")|,(?=\s*[\]}])', lambda match: match.group(1) or "", kept)


def _field(item: dict[str, Any], structs: dict[str, Any], parents: tuple[str, ...]) -> FieldDefinition:
    type_ = item["type"]
    struct = type_.removeprefix("[]")
    if struct in parents:
        raise ValueError(f"{struct} contains itself; the catalog has no recursive types")
    children = item.get("fields") or structs.get(struct, [])
    tag = item.get("tag")
    default = item.get("default")
    return FieldDefinition(
        name=item["name"],
        type=type_,
        # 3.5's FetchRequest has a tagged field that gives no `versions`.
        versions=item.get("versions") or item["taggedVersions"],
        nullable=item.get("nullableVersions"),
        tag=None if tag is None else int(tag),
        tagged=item.get("taggedVersions"),
        default=_normal_default(type_, default),
        entity=item.get("entityType"),
        map_key=bool(item.get("mapKey", False)),
        ignorable=bool(item.get("ignorable", False)),
        classic=item.get("flexibleVersions") == "none",
        fields=[_field(child, structs, (*parents, struct)) for child in children],
    )


def _normal_default(type_: str, default: Any) -> str | None:
    """One spelling a value; None where the definition repeats what the type starts with anyway."""
    if default is None:
        return None
    text = str(default)
    if text == "null":
        return "null"
    if type_ == "bool":
        return "true" if text.lower() == "true" else None
    if re.fullmatch(r"u?int\d+", type_):
        number = int(text, 0)
        return str(number) if number else None
    if type_ == "float64":
        return str(float(text)) if float(text) else None
    return text or None


def _kips(comments: list[str]) -> dict[int, list[int]]:
    """KIP numbers by version, from remarks of the form `Version 9 adds X (KIP-320)`."""
    by_version: dict[int, list[int]] = {}
    text = " ".join(line.strip() for line in comments)
    # Only at the head of a remark: "Version 14 is the same as version 13" speaks of 14. One file spells it "Verison 5".
    heads = list(re.finditer(r"\b(?:Ver(?:si|is)on|[Ss]tarting (?:from|in|with) version|[Ii]n version) (\d+)\b", text))
    for head, following in zip_longest(heads, heads[1:]):
        # "This API can return X (KIP-1152)" after a version's remark isn't about a version.
        remark = text[head.end() : following.start() if following else None].partition("This API")[0]
        for number in map(int, re.findall(r"KIP-(\d+)", remark)):
            numbers = by_version.setdefault(int(head.group(1)), [])
            if number not in numbers:
                numbers.append(number)
    return by_version


def _errors(comments: list[str]) -> list[ListedError]:
    """The `Supported errors` comment. Its heading or a remark after an error (`only for X`) names the fields."""
    listed: dict[str, ListedError] = {}
    heading: tuple[str, ...] = ()
    for line in comments:
        if title := re.search(r"[Ss]upported errors(?: for ([\w ]+))?", line):
            heading = tuple((title.group(1) or "").split(" and ")) if title.group(1) else ()
        match = re.match(r"\s*- ([A-Z][A-Z_]+) \(version (\d+\+)\)(?: - only for (\w+))?", line)
        if match:
            fields = (match.group(3),) if match.group(3) else heading
            listed.setdefault(match.group(1), ListedError(match.group(1), match.group(2), fields))
    return sorted(listed.values(), key=lambda error: error.name)
