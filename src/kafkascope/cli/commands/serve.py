"""`kafkascope serve` serves the explorer to browsers on this machine, until Ctrl-C."""

import click

from kafkascope.cli.arguments import json_option

LOOPBACK = "127.0.0.1"


@click.command
@click.option(
    "--port", metavar="N", type=click.IntRange(0, 65535), default=0, help="Port to listen on; by default a free one."
)
@click.option("--host", metavar="H", default=LOOPBACK, help="Address to listen on; by default loopback.")
@click.option("--lake", metavar="LAKE", help="Include the report and the exchanges of this lake.")
@click.option("--no-browser", is_flag=True, help="Don't open a browser.")
@json_option
def run(port: int, host: str, lake: str | None, no_browser: bool, as_json: bool) -> int:
    """Serve the explorer to a browser.

    It listens on loopback, so only this machine can reach it. With --host others can too; there is no password and no
    encryption.
    """
    from kafkascope.extras import need_extras

    need_extras("serve", "explorer")
    from kafkascope.cli.serve_run import serve

    return serve(host, port, lake, browser=not no_browser, as_json=as_json)
