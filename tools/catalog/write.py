"""Writes the catalog's text files, one per message, so that a new release is a small diff."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from tools.catalog.merge import Block, Merged, MergedField
from tools.catalog.versions import format_set, within


def message_lines(
    merged: Merged,
    older: dict[str, frozenset[int]],
    releases: list[str],
    covered: list[str],
    in_patches: Mapping[tuple[str, str], frozenset[int]] = MappingProxyType({}),
) -> list[str]:
    """`older` holds the version ranges of releases that have no definition files; `covered` are the releases
    whose jars were read for this kind of message, so that absence there means removal. `in_patches` are version
    ranges by release and patch; those that are not the release's are written down."""
    newest_definition = list(merged.definitions.values())[-1]
    newest = max(frozenset().union(*merged.valid.values()))
    lines = [merged.name, f"kind {newest_definition.kind}"]
    if newest_definition.api_key is not None:
        lines.append(f"key {newest_definition.api_key}")
    names = [definition.name for definition in merged.definitions.values()]
    for name in dict.fromkeys(n for n in names if n != merged.name):
        last = [release for release, definition in merged.definitions.items() if definition.name == name][-1]
        lines.append(f"was {last} {name}")
    valid = {r: _plain(v) for r, v in {**older, **merged.valid}.items()}
    served = {r: d for r, d in merged.definitions.items() if merged.valid[r]}
    facts = {
        "valid": valid,
        "listeners": {r: ",".join(d.listeners) for r, d in served.items()},
        "unstable": {r: str(max(merged.valid[r])) for r, d in served.items() if d.unstable},
        "deprecated": {r: _plain(within(d.deprecated, merged.valid[r])) for r, d in served.items()},
    }
    for word, by_release in facts.items():
        lines += _runs(word, by_release, releases, covered[-1])
    for (release, patch), versions in in_patches.items():
        if versions != merged.valid[release]:
            lines.append(f"patch {patch} {_plain(versions)}")
    # The newest release that names a version's KIPs is right: 2.5 has a typo, KIP-599 for KIP-559.
    kips = {
        version: numbers for definition in merged.definitions.values() for version, numbers in definition.kips.items()
    }
    for version in sorted(kips):
        lines.append(f"kip {version} {' '.join(map(str, sorted(kips[version])))}")
    for error in newest_definition.errors:
        lines.append(f"error {error.name} {error.versions} {','.join(error.fields) or '-'}")
    for block in merged.blocks:
        lines += _block_lines(block, newest)
    return lines


def _plain(versions: Iterable[int]) -> str:
    return format_set(versions, newest=-1)


def _runs(word: str, by_release: dict[str, str], releases: list[str], newest: str) -> list[str]:
    """`word FIRST..LAST value`, `word FIRST+ value` for what still holds in the newest release read.

    A release whose other jars are not published yet neither ends nor extends what they define.
    """
    runs: list[tuple[str, str, str]] = []
    for release in releases:
        value = by_release.get(release, "")
        if not value:
            continue
        adjacent = bool(runs) and releases.index(runs[-1][1]) + 1 == releases.index(release)
        if adjacent and runs[-1][2] == value:
            runs[-1] = (runs[-1][0], release, value)
        else:
            runs.append((release, release, value))
    return [
        f"{word} {first}{'+' if last == newest else '' if first == last else '..' + last} {value}"
        for first, last, value in runs
    ]


def _block_lines(block: Block, newest: int) -> list[str]:
    head = f"layout {format_set(block.versions, newest)}"
    if block.first:
        head += f" releases {block.first}..{block.last}"
    head += f" flexible {format_set(block.flexible, newest) or 'none'}"
    return [head, *_field_lines(block.fields, newest, 1)]


def _field_lines(fields: list[MergedField], newest: int, depth: int) -> list[str]:
    lines = []
    for f in fields:
        parts = [f.name, f.type, format_set(f.versions, newest)]
        if f.nullable:
            parts.append(f"null={format_set(f.nullable, newest)}")
        if f.tagged:
            parts.append(f"tag={f.tag}@{format_set(f.tagged, newest)}")
        if f.default is not None:
            parts.append(f"default={f.default}")
        if f.entity:
            parts.append(f"entity={f.entity}")
        parts += [
            word for word, holds in (("key", f.map_key), ("ignorable", f.ignorable), ("classic", f.classic)) if holds
        ]
        if f.since:
            parts.append(f"since={f.since}")
        if f.was:
            parts.append("was=" + ",".join(f"{name}@{last}" for last, name in f.was.items()))
        if any(" " in part for part in parts):
            raise ValueError(f"{f.name}: a space in {parts}")
        lines.append("  " * depth + " ".join(parts))
        lines += _field_lines(f.fields, newest, depth + 1)
    return lines


def write_folder(folder: Path, files: dict[str, list[str]]) -> None:
    """Exactly these files: one whose message no longer exists is deleted."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.txt"):
        if path.stem not in files:
            path.unlink()
    for stem, lines in files.items():
        (folder / f"{stem}.txt").write_text("\n".join(lines) + "\n")
