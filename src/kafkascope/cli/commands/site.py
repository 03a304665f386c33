"""`kafkascope site DIR` writes the explorer as plain files, for any web host or to open from disk."""

import sys

import click

from kafkascope.cli.arguments import json_option


@click.command
@click.argument("folder", metavar="DIR")
@click.option("--force", is_flag=True, help="Write to a folder that has other files too.")
@click.option("--url", metavar="URL", default="", help="Address where it will be published; adds a sitemap.")
@json_option
def run(folder: str, force: bool, url: str, as_json: bool) -> None:
    """Write the explorer as static files.

    Includes everything except the decoder and the lake. A site from an earlier run is replaced.
    """
    from pathlib import Path

    from kafkascope.extras import need_extras

    need_extras("site", "explorer")
    from kafkascope.explorer.site import site

    shows = sys.stderr.isatty()

    def progress(done: int, total: int) -> None:
        if shows and (done % 20 == 0 or done == total):
            print(f"\r{done} of {total} pages", end="\n" if done == total else "", file=sys.stderr, flush=True)

    count = site(Path(folder), progress, force=force, public=url)
    if as_json:
        from kafkascope.cli.output import print_json

        print_json({"folder": folder, "pages": count})
        return
    print(f"{count} pages in {folder}; open {Path(folder) / 'index.html'}")
