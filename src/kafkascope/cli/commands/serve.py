"""`kafkascope serve`: the explorer on this machine, for a browser, until Ctrl-C."""

import click

from kafkascope.cli.arguments import json_option

LOOPBACK = "127.0.0.1"


@click.command
@click.option("--port", metavar="N", type=click.IntRange(0, 65535), default=0, help="This port; a free one without it.")
@click.option("--host", metavar="H", default=LOOPBACK, help="Listen on this address instead of loopback.")
@click.option("--lake", metavar="LAKE", help="Add the report and the exchanges of this lake.")
@click.option("--no-browser", is_flag=True, help="Open no browser.")
@json_option
def run(port: int, host: str, lake: str | None, no_browser: bool, as_json: bool) -> int:
    """Serve the explorer to a browser.

    It listens on loopback, so only this machine can see it. With --host others can too: there is no password and no
    encryption.
    """
    from kafkascope.extras import need_extras

    need_extras("serve", "explorer")
    from kafkascope.cli.serve_run import serve

    return serve(host, port, lake, browser=not no_browser, as_json=as_json)
