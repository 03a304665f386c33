"""Prints the errors of a message as tables, one per field that carries them, with the source of each."""

from kafkascope.cli.tables import table
from kafkascope.cli.terminal import prose, remark
from kafkascope.schema.errors.message_errors import MessageError

ORIGINS = {"definition": "Kafka's definition file", "code": "Kafka's compiled broker", "broker": "a live broker"}


def print_errors(errors: list[MessageError]) -> None:
    if not errors:
        prose("None known: neither a definition file nor the broker's code names one.", "  ")
        return
    groups: dict[tuple[str, ...], list[MessageError]] = {}
    for item in sorted(errors, key=lambda item: (not item.fields, -len(item.fields))):
        groups.setdefault(item.fields, []).append(item)
    for fields, items in groups.items():
        prose(f"in {', '.join(fields)}:" if fields else "in an unknown field:", "    ", "  ")
        table(
            [(str(i.error.code), i.error.name, "retriable" if i.error.retriable else "", i.origin) for i in items],
            indent="    ",
        )
    origins = sorted({item.origin for item in errors})
    remark(", ".join(f"{origin}: {ORIGINS[origin]}" for origin in origins), "  ")
