"""`kafkascope warm-up` compiles the kernels that read recordings and many frames, before anything waits for them."""

import click

from kafkascope.cli.arguments import json_option


@click.command
@json_option
def run(as_json: bool) -> int:
    """Compile all kernels, once per version and machine.

    Takes half a minute or so on two cores, and nothing where they are compiled already. For images, archives and the
    workers of a cluster; elsewhere the first recording waits for it.

    Exits with 2 where somebody else could write to their folder, with 3 where no folder can be written to.
    """
    from kafkascope.extras import need_extras

    need_extras("warm-up", "columns")
    from kafkascope.capture.warm_up.run import is_warm, warm_up
    from kafkascope.cli.output import plain, print_json
    from kafkascope.cli.terminal import note
    from kafkascope.formatting import count, size, span

    if not is_warm():
        note("compiling the kernels, once: half a minute or so")
    done = warm_up()
    if as_json:
        print_json(plain(done))
        return 0
    new = f"{done.compiled} compiled now" if done.compiled else "none was missing"
    print(f"{count(done.kernels, 'kernel')}, {size(done.bytes)} in {done.folder}: {new}, {span(1000 * done.seconds)}")
    return 0
