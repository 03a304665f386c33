"""Prints an API or a message over all its versions: its purpose, its users, the releases of each version, every
field."""

from typing import Any

from kafkascope.cli.output import print_json
from kafkascope.cli.tables import table
from kafkascope.cli.terminal import heading, prose, remark, title
from kafkascope.schema.api_facts import api_facts, family_of, kips_of, kips_of_version
from kafkascope.schema.catalog import message
from kafkascope.schema.export import api_json, message_json, span_text
from kafkascope.schema.model import Field, Message
from kafkascope.schema.prose import paragraphs
from kafkascope.schema.releases import newest_release
from kafkascope.schema.targets import Target


def show_overview(target: Target, as_json: bool) -> None:
    known = [message(name) for name in target.messages]
    if as_json:
        answer: dict[str, Any] = {"messages": [message_json(item) for item in known]}
        if target.api:
            answer |= {"api": api_json(known[0].key or 0, target.api)}
        print_json(answer)
        return
    first = known[0]
    kind = f"API key {first.key}" if first.api else first.kind if first.key is None else f"{first.kind} {first.key}"
    family = f" · {family_of(first.api)}" if first.api else ""
    title(target.api or first.name, f"{kind}{family}")
    for part in paragraphs(first):
        print()
        prose(part)
    if first.api:
        show_facts(first)
    heading("Versions")
    table(_versions(first), ("version", "Kafka", "encoding", "KIPs", ""))
    for item in known:
        _aliases(item)
        for block in item.blocks:
            only = f" v{block.versions.text} in Kafka {block.releases}" if block.releases else ""
            heading(f"{item.name}{only}")
            table(list(_fields(block.fields, 0)), ("field", "type", "versions", ""))
    print()
    newest = first.all_versions()[-1]
    remark(f"kafkascope show {first.name}:{newest} shows one version byte by byte.")


def show_facts(known: Message, version: int | None = None) -> None:
    """Who sends it, with which tools, and the permission it needs."""
    assert known.api is not None
    facts = api_facts(known.api)
    rows: list[tuple[str, ...]] = []
    if facts.sends:
        rows.append(("sent by", ", ".join(facts.sends)))
    listeners = message(f"{known.api}Request").listeners_in(newest_release())
    if listeners:
        rows.append(("served by", f"{', '.join(listeners)} listeners"))
    if facts.acls:
        rows.append(("needs", "; ".join(_acl(*acl) for acl in facts.acls)))
    if facts.tools:
        rows.append(("tools", ", ".join(facts.tools)))
    if facts.admin:
        rows.append(("Admin", ", ".join(facts.admin)))
    kips = kips_of(known, version)
    if kips:
        rows.append(("KIPs", ", ".join(f"KIP-{number}" for number in kips)))
    print()
    table(rows, indent="")


def _acl(operation: str, resource: str, remark: str) -> str:
    need = "no permission" if operation == "none" else f"{operation} on {resource}"
    return f"{need} ({remark})" if remark else need


def _versions(known: Message) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for version in reversed(known.all_versions()):
        flexible = any(version in block.flexible for block in known.blocks if block.releases is None)
        marks = [f"not in {patch}" for patch in known.patches_without(version)]
        marks += [f"unstable in {span}" for span, unstable in known.unstable if unstable == version]
        marks += [f"deprecated in {span}" for span, versions in known.deprecated if version in versions]
        kips = " ".join(map(str, kips_of_version(known, version)))
        rows.append(
            (
                str(version),
                span_text(known.releases_of(version)),
                "flexible" if flexible else "classic",
                kips,
                ", ".join(marks),
            )
        )
    return rows


def _aliases(known: Message) -> None:
    for name, last in known.was:
        print()
        prose(f"{known.name} was called {name} up to Kafka {last}.")


def _fields(fields: tuple[Field, ...], depth: int) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for field in fields:
        remarks = []
        if field.nullable:
            remarks.append("nullable" if field.nullable == field.versions else f"nullable {field.nullable.text}")
        if field.tagged:
            remarks.append(f"tag {field.tag}")
        if field.since:
            remarks.append(f"since {field.since}")
        remarks += [f"{name} up to {last}" for name, last in field.was]
        type_ = f"[]{field.type}" if field.array else field.type
        rows.append(("  " * depth + field.name, type_, field.versions.text, ", ".join(remarks)))
        rows += _fields(field.fields, depth + 1)
    return rows
