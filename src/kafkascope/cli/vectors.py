"""`kafkascope vectors DIR`: test vectors for clients in any language: message, version, JSON, hex."""

import click

from kafkascope.cli.arguments import complete_target


@click.command
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False))
@click.option(
    "--only",
    metavar="NAME",
    multiple=True,
    shell_complete=complete_target,
    help="Only this API or message; may be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the counts as JSON.")
def run(folder: str, only: tuple[str, ...], as_json: bool) -> None:
    """Write test vectors, one file a message, for a codec in any language.

    Each file DIR/NAME.json is a list of objects with message, version, case, json and hex: the body's bytes without
    frame and header.
    """
    import json
    import os

    from kafkascope.cli.output import print_json
    from kafkascope.cli.terminal import note
    from kafkascope.codec.vectors import vectors_of
    from kafkascope.errors import InputError
    from kafkascope.schema.catalog import index
    from kafkascope.schema.targets import parse_target

    names = [name for item in only for name in parse_target(item).messages] or list(index())
    total = 0
    try:
        os.makedirs(folder, exist_ok=True)
        for name in names:
            rows = vectors_of(name)
            total += len(rows)
            with open(os.path.join(folder, f"{name}.json"), "w", encoding="utf-8") as file:
                file.write("[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n")
    except OSError as error:
        raise InputError(f"{error.filename or folder}: {(error.strerror or str(error)).lower()}") from None
    if as_json:
        print_json({"folder": folder, "messages": len(names), "vectors": total})
        return
    note(f"{total} vectors of {len(names)} messages in {folder}")
