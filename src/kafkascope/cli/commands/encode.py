"""`kafkascope encode NAME:V [JSON]` encodes Kafka's JSON form as hex, base64, raw bytes or annotated bytes."""

import click

from kafkascope.cli.arguments import complete_message, complete_release

OUTPUTS = ("hex", "base64", "raw", "annotated")


@click.command
@click.argument("name", metavar="NAME:V", shell_complete=complete_message)
@click.argument("value", metavar="[JSON|@FILE|-]", default="-")
@click.option(
    "--release", metavar="R", shell_complete=complete_release, help="Use the layout and names of this Kafka release."
)
@click.option("--frame", is_flag=True, help="Write frame length and header too.")
@click.option("--correlation-id", metavar="N", type=int, help="For --frame; default 0.")
@click.option("--client-id", metavar="ID", help="For --frame of a request.")
@click.option("--output", type=click.Choice(OUTPUTS), default="hex", help="Notation of the bytes.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON with message, version and hex.")
def run(
    name: str,
    value: str,
    release: str | None,
    frame: bool,
    correlation_id: int | None,
    client_id: str | None,
    output: str,
    as_json: bool,
) -> None:
    """Encode a message from Kafka's JSON form.

    Missing fields get their defaults. Field names are in camelCase or as in Kafka's definitions, uuids in Kafka's
    form or with dashes, bytes in base64.
    """
    import sys

    from kafkascope.cli.bytes.json_text import read_json
    from kafkascope.codec.frame import encode_frame, header_version
    from kafkascope.codec.json_form import from_json
    from kafkascope.codec.message import encode
    from kafkascope.errors import UsageError
    from kafkascope.schema.catalog import message
    from kafkascope.schema.layouts.layout import layout
    from kafkascope.schema.targets import parse_message

    message_name, version = parse_message(name)
    layout(message_name, version, release)  # reports the known versions and releases
    if value == "-" and sys.stdin and sys.stdin.isatty():
        raise UsageError(
            f"no JSON to encode: give JSON or @FILE, or pipe it in; `kafkascope example {name}` prints an example"
        )
    content = from_json(message_name, version, read_json(value), release)
    if not frame and (correlation_id is not None or client_id is not None):
        raise UsageError("--correlation-id and --client-id are for the header that --frame writes; add --frame")
    if frame:
        header: dict[str, object] = {"correlationId": correlation_id or 0}
        if client_id is not None:
            if message(message_name).kind != "request" or header_version(message_name, version) == 0:
                raise UsageError(f"the header of {message_name} v{version} has no client id")
            header["clientId"] = client_id
        data = encode_frame(message_name, version, content, header, release)
    else:
        data = encode(message_name, version, content, release)
    _write(data, message_name, version, release, output, as_json)


def _write(data: bytes, name: str, version: int, release: str | None, output: str, as_json: bool) -> None:
    import sys
    from base64 import b64encode

    from kafkascope.cli.output import print_json

    if as_json:
        print_json({"message": name, "version": version, "hex": data.hex()})
    elif output == "raw":
        sys.stdout.buffer.write(data)
    elif output == "base64":
        print(b64encode(data).decode())
    elif output == "annotated":
        from kafkascope.cli.bytes.decode_view import print_bytes

        print_bytes(data, f"{name}:{version}", release)
    else:
        print(data.hex())
