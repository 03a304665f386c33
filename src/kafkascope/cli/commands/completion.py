"""`kafkascope completion SHELL` prints the script that completes commands, messages and versions on Tab."""

import click
from click.shell_completion import get_completion_class

from kafkascope.cli.arguments import json_option
from kafkascope.cli.output import print_json

SHELLS = ("bash", "zsh", "fish")
# The variable that click's scripts set when Tab is pressed, as `main` expects it.
_COMPLETING = "_KAFKASCOPE_COMPLETE"


@click.command
@click.argument("shell", metavar="SHELL", type=click.Choice(SHELLS))
@json_option
@click.pass_context
def run(context: click.Context, shell: str, as_json: bool) -> int:
    """Print the tab completion script for bash, zsh or fish.

    \b
    bash:  echo 'eval "$(kafkascope completion bash)"' >> ~/.bashrc
    zsh:   echo 'eval "$(kafkascope completion zsh)"' >> ~/.zshrc
    fish:  kafkascope completion fish > ~/.config/fish/completions/kafkascope.fish
    """
    completion = get_completion_class(shell)
    assert completion is not None  # SHELLS are the shells that click knows
    script = completion(context.find_root().command, {}, "kafkascope", _COMPLETING).source()
    if as_json:
        print_json({"shell": shell, "script": script})
    else:
        print(script)
    return 0
