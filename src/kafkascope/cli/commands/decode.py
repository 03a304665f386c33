"""`kafkascope decode` prints the meaning of bytes: a tree beside the annotated bytes, or JSON."""

import click

from kafkascope.cli.arguments import complete_message, complete_release, json_option
from kafkascope.codec.text.byte_text import FORMS


@click.command
@click.argument("data", metavar="[HEX|BASE64|@FILE|-]", default="-")
@click.option(
    "--as",
    "name",
    metavar="NAME:V",
    shell_complete=complete_message,
    help="The message; needed for responses and bodies.",
)
@click.option(
    "--release", metavar="R", shell_complete=complete_release, help="Use the layout and names of this Kafka release."
)
@click.option("--input", "form", type=click.Choice(FORMS), default="auto", help="Notation of the bytes.")
@click.option("--records", is_flag=True, help="Include keys, values and headers of record batches.")
@click.option("--full", is_flag=True, help="Print every byte and item, however long.")
@json_option
def run(data: str, name: str | None, release: str | None, form: str, records: bool, full: bool, as_json: bool) -> int:
    """Decode a request, a response, or a message body.

    The bytes are hex, a hex dump, base64 or raw, with or without frame length and header. A request names itself; a
    response or a bare body needs --as, for example --as DescribeQuorumResponse:1.

    Exits with 1 if the bytes decode but would be encoded differently, and prints why.
    """
    import sys

    from kafkascope.cli.bytes.decode_view import print_decoded, print_decoded_json
    from kafkascope.cli.bytes.input import read_bytes
    from kafkascope.codec.identify.identify import identify
    from kafkascope.errors import NotFoundError, UsageError
    from kafkascope.schema.releases import check_release
    from kafkascope.schema.targets import parse_message

    if data == "-" and sys.stdin and sys.stdin.isatty():
        raise UsageError("nothing to decode: give hex, base64 or @FILE, or pipe it in")
    try:
        if name is not None:
            parse_message(name)
    except NotFoundError as error:
        raise UsageError(str(error)) from None  # 1 means that the bytes were read
    known_release = None if release is None else check_release(release)
    raw = read_bytes(data, form)
    identified = identify(raw, name, known_release, spans=not as_json)
    if as_json:
        print_decoded_json(identified, records=records)
    else:
        print_decoded(identified, raw, records=records, full=full)
    return 0 if identified.exact else 1
