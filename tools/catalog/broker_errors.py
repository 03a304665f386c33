"""Adds the output of `kafkascope probe --json` to `broker_errors.txt`: which errors live brokers returned, in which
field, at which versions, in which release. Existing entries stay."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kafkascope.schema.catalog import apis, message
from kafkascope.schema.errors.error_codes import by_name
from kafkascope.schema.errors.message_errors import error_fields
from kafkascope.schema.releases import check_release, release_order
from tools.catalog.versions import format_set, parse_range

HEAD = "# API, error, field, versions and releases: what live brokers returned (`python -m tools.catalog facts`)"

# (API, error, place) to versions and releases
Facts = dict[tuple[str, str, str], tuple[set[int], set[str]]]


def add_probes(file: Path, probes: Iterable[Path], release: str | None) -> str:
    """One line for the maintainer: how many facts there are now."""
    facts = read_facts(file.read_text(encoding="utf-8") if file.exists() else "")
    before = len(facts)
    for path in probes:
        _add_probe(facts, json.loads(path.read_text(encoding="utf-8")), release)
    file.write_text("\n".join(fact_lines(facts)) + "\n", encoding="utf-8")
    return f"{file.name}: {len(facts)} errors by API and field, {len(facts) - before} of them new"


def read_facts(text: str) -> Facts:
    facts: Facts = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            api, error, place, versions, releases = line.split(" ")
            facts[api, error, place] = (_numbers(versions), set(releases.split(",")))
    return facts


def _numbers(text: str) -> set[int]:
    versions: set[int] = set()
    for part in text.split(","):
        bounds = parse_range(part)
        if bounds is not None:
            versions |= set(range(bounds[0], bounds[1] + 1))
    return versions


def _add_probe(facts: Facts, probe: Mapping[str, Any], release: str | None) -> None:
    """SystemExit where the release is not clear, or something was seen that the catalog has no place for."""
    release_name = release or (probe["releases"][0] if len(probe["releases"]) == 1 else None)
    if release_name is None:
        raise SystemExit(f"{probe['address']} fits {' and '.join(probe['releases']) or 'no release'}; use --release")
    catalog_release = check_release(release_name)
    for proof in probe["proofs"]:
        for seen in proof["errors"]:
            places = error_fields(message(f"{proof['api']}Response"), proof["version"])
            if seen["error"] not in by_name() or seen["place"] not in places:
                raise SystemExit(f"{proof['api']} v{proof['version']}: {seen} isn't in the catalog")
            key = (proof["api"], by_name()[seen["error"]].name, seen["place"])
            versions, releases = facts.setdefault(key, (set(), set()))
            versions.add(proof["version"])
            releases.add(catalog_release)


def fact_lines(facts: Facts) -> list[str]:
    """By API key, then by error and field."""
    keys = {api: key for key, api in apis().items()}
    order = release_order()
    rows = [HEAD]
    for api, error, place in sorted(facts, key=lambda fact: (keys[fact[0]], fact)):
        versions, releases = facts[api, error, place]
        seen_in = ",".join(sorted(releases, key=lambda name: order[name]))
        rows.append(f"{api} {error} {place} {format_set(versions, newest=-1)} {seen_in}")
    return rows
