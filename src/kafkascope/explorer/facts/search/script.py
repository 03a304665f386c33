"""Packs the entries of the search into the script that the browser loads."""

import json
from importlib.resources import files
from typing import Any

from kafkascope.explorer.facts.field_places import places_in
from kafkascope.explorer.facts.manual import slug
from kafkascope.explorer.facts.search.entries import ENTRY_KINDS, entries, manual_headings, page_kind
from kafkascope.schema.catalog import index, message
from kafkascope.schema.model import Message


def index_script() -> str:
    packed: dict[str, list[Any]] = {kind: [] for kind in ENTRY_KINDS if kind != "field"}
    for entry in entries():
        if entry.kind == "page":
            packed["page"].append([entry.text, entry.about, entry.address, *entry.also])
        elif entry.kind in ("api", "error", "release", "kip", "name"):
            packed[entry.kind].append([entry.text, entry.about, *entry.also])
    # The place of a heading only where it isn't made of its title.
    packed["manual"] = [
        [
            page.name,
            page.title,
            *(part.title if part.place == slug(part.title) else [part.title, part.place] for part in parts),
        ]
        for page, parts in manual_headings().items()
    ]
    for name in index():
        definition = message(name)
        versions = definition.all_versions()
        oldest, newest = versions[0], versions[-1]
        # The oldest version is enough if all versions up to the newest exist.
        others = oldest if versions == list(range(oldest, newest + 1)) else versions
        row = [name, definition.kind, newest, others, _packed_fields(definition, newest), *index()[name].aliases]
        packed[page_kind(definition.kind)].append(row)
    data = json.dumps(packed, ensure_ascii=False, separators=(",", ":"))
    finder = files("kafkascope.explorer").joinpath("static", "find.js").read_text(encoding="utf-8")
    return f"window.kafkascope={{data:{data}}};\n{finder}"


def _packed_fields(definition: Message, newest: int) -> str:
    """`GroupId,Topics(TopicId,Partitions(PartitionIndex)),ReplicaId@14`, with a version unless it's the newest."""
    versions = {".".join(place.path): place.version for place in places_in(definition)}
    tree: dict[str, Any] = {}
    for path in versions:
        at = tree
        for part in path.split("."):
            at = at.setdefault(part, {})

    def pack(level: dict[str, Any], above: str) -> str:
        rows = []
        for name, inner in level.items():
            path = f"{above}{name}"
            mark = "" if versions[path] == newest else f"@{versions[path]}"
            rows.append(f"{name}{mark}" + (f"({pack(inner, path + '.')})" if inner else ""))
        return ",".join(rows)

    return pack(tree, "")
