"""Builds the test vectors of a message: the example and the boundary cases of every version, as JSON and hex."""

from typing import Any

from kafkascope.codec.json_form import to_json
from kafkascope.codec.message import encode
from kafkascope.schema.catalog import message
from kafkascope.schema.layouts.examples import example
from kafkascope.schema.layouts.layout import layout
from kafkascope.schema.layouts.samples import THEMES, sample


def vectors_of(name: str) -> list[dict[str, Any]]:
    """Objects with message, version, case, json and hex; a layout that only older releases have names its release."""
    rows: list[dict[str, Any]] = []
    definition = message(name)
    for version in definition.all_versions():
        releases = [None, *(b.releases.first for b in definition.blocks if b.releases and version in b.versions)]
        for release in releases:
            message_layout = layout(name, version, release)
            cases = {"example": example(name, version, release)} if release is None else {}
            cases |= {theme: sample(message_layout, number) for number, theme in enumerate(THEMES)}
            for case, value in cases.items():
                data = encode(name, version, value, release)
                row: dict[str, Any] = {"message": name, "version": version, "case": case}
                if release is not None:
                    row["release"] = release
                rows.append(row | {"json": to_json(name, version, value, release), "hex": data.hex()})
    return rows
