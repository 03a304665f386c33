"""`kafkascope warm-up` compiles the kernels ahead of time, so that no later command waits for it."""

import click

from kafkascope.cli.arguments import json_option


@click.command
@json_option
def run(as_json: bool) -> int:
    """Compile all kernels, once per version and machine.

    Takes about half a minute on two cores, and nothing if they are already compiled. Use it for container images,
    archives and the workers of a cluster. Elsewhere the first command that reads a recording compiles them.

    Exits with 2 if other users can write to the folder of the kernels, with 3 if no folder is writable.
    """
    from kafkascope.extras import need_extras

    need_extras("warm-up", "columns")
    from kafkascope.capture.warm_up.run import is_warm, warm_up
    from kafkascope.cli.output import plain, print_json
    from kafkascope.cli.terminal import note
    from kafkascope.formatting import count, size, span

    if not is_warm():
        note("compiling the kernels, once: about half a minute")
    done = warm_up()
    if as_json:
        print_json(plain(done))
        return 0
    new = f"{done.compiled} compiled now" if done.compiled else "none was missing"
    print(f"{count(done.kernels, 'kernel')}, {size(done.bytes)} in {done.folder}: {new}, {span(1000 * done.seconds)}")
    return 0
