"""`kafkascope vectors DIR` writes test vectors for clients in any language: message, version, JSON, hex."""

import click

from kafkascope.cli.arguments import complete_target


@click.command
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False))
@click.option(
    "--only",
    metavar="NAME[:V]",
    multiple=True,
    shell_complete=complete_target,
    help="Only this API or message, or one version of it; may be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the counts as JSON.")
def run(folder: str, only: tuple[str, ...], as_json: bool) -> None:
    """Write test vectors for codecs in any language.

    Each file DIR/NAME.json is a list of objects with message, version, case, json and hex. The hex is the body, without
    frame and header.
    """
    import json
    import os

    from kafkascope.cli.output import print_json
    from kafkascope.cli.terminal import note
    from kafkascope.codec.vectors import vectors_of
    from kafkascope.errors import InputError

    versions_by_name = _versions_by_name(only)
    total = 0
    try:
        os.makedirs(folder, exist_ok=True)
        for name, versions in versions_by_name.items():
            rows = [row for row in vectors_of(name) if versions is None or row["version"] in versions]
            total += len(rows)
            with open(os.path.join(folder, f"{name}.json"), "w", encoding="utf-8") as file:
                file.write("[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n")
    except OSError as error:
        raise InputError(f"{error.filename or folder}: {(error.strerror or str(error)).lower()}") from None
    if as_json:
        print_json({"folder": folder, "messages": len(versions_by_name), "vectors": total})
        return
    note(f"{total} vectors of {len(versions_by_name)} messages in {folder}")


def _versions_by_name(only: tuple[str, ...]) -> dict[str, set[int] | None]:
    """Versions by message, None for all of them; each message once, however often it was given."""
    from kafkascope.schema.catalog import index
    from kafkascope.schema.layouts.layout import layout
    from kafkascope.schema.targets import parse_target

    versions_by_name: dict[str, set[int] | None] = {}
    for item in only:
        target = parse_target(item)
        for name in target.messages:
            if target.version is None:
                versions_by_name[name] = None
                continue
            layout(name, target.version)  # reports the known versions if it isn't one
            versions = versions_by_name.setdefault(name, set())
            if versions is not None:
                versions.add(target.version)
    return versions_by_name or dict.fromkeys(index())
