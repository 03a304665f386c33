"""`kafkascope example NAME:V` prints a realistic value that a broker accepts, as JSON or bytes."""

import click

from kafkascope.cli.arguments import complete_message, complete_release


@click.command
@click.argument("name", metavar="NAME:V", shell_complete=complete_message)
@click.option(
    "--release", metavar="R", shell_complete=complete_release, help="Use the layout and names of this Kafka release."
)
@click.option("--hex", "as_hex", is_flag=True, help="Print the whole frame as hex instead of JSON.")
@click.option("--annotated", is_flag=True, help="Print the whole frame with every byte annotated.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON with message, version, value and hex.")
def run(name: str, release: str | None, as_hex: bool, annotated: bool, as_json: bool) -> None:
    """Print an example of a message."""
    from kafkascope.cli.bytes.hex_view import print_hex
    from kafkascope.cli.output import print_json
    from kafkascope.codec.annotations.frame import annotated_frame
    from kafkascope.codec.json_form import to_json
    from kafkascope.schema.layouts.examples import example
    from kafkascope.schema.layouts.layout import layout
    from kafkascope.schema.targets import parse_message

    message_name, version = parse_message(name)
    message_layout = layout(message_name, version, release)
    value = example(message_name, version, message_layout.release)
    data, annotations = annotated_frame(message_layout, value)
    shown = to_json(message_name, version, value, message_layout.release)
    if as_json:
        print_json({"message": message_name, "version": version, "value": shown, "hex": data.hex()})
    elif as_hex:
        print(data.hex())
    elif annotated:
        print_hex(data, annotations, full=True)
    else:
        print_json(shown)
