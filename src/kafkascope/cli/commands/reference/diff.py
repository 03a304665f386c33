"""`kafkascope diff A B` compares two versions of a message or API, or two Kafka releases."""

import click

from kafkascope.cli.arguments import complete_version_or_release, json_option


@click.command
@click.argument("old", metavar="A", shell_complete=complete_version_or_release)
@click.argument("new", metavar="B", shell_complete=complete_version_or_release)
@json_option
def run(old: str, new: str, as_json: bool) -> int:
    """Compare two versions of a message, or two Kafka releases.

    \b
    kafkascope diff ShareFetchRequest:1 ShareFetchRequest:2
    kafkascope diff ShareFetch:1 ShareFetch:2      request and response
    kafkascope diff 3.9 4.4                        all messages

    Exits with 1 if there are differences, with 0 if not.
    """
    if _is_release(old) or _is_release(new):
        from kafkascope.cli.reference.release_diff import diff_releases

        _check_both(old, new)
        return diff_releases(old, new, as_json)
    from kafkascope.cli.output import print_json
    from kafkascope.cli.reference.change_lines import print_changes
    from kafkascope.cli.terminal import heading
    from kafkascope.errors import UsageError
    from kafkascope.schema.history.change_text import change_json
    from kafkascope.schema.history.compare import compare_layouts
    from kafkascope.schema.layouts.layout import layout
    from kafkascope.schema.targets import parse_target

    before, after = parse_target(old), parse_target(new)
    if before.version is None or after.version is None:
        raise UsageError(
            f"diff needs two versions, as in {before.messages[0]}:1 {after.messages[0]}:2, or two releases"
        )
    if len(before.messages) != len(after.messages):
        raise UsageError(f"{old} is {_kind(before.api)}, {new} is {_kind(after.api)}; compare two of a kind")
    answer = []
    differ = False
    for first, second in zip(before.messages, after.messages, strict=True):
        changes = compare_layouts(layout(first, before.version), layout(second, after.version))
        differ = differ or bool(changes)
        if as_json:
            title = {"old": f"{first}:{before.version}", "new": f"{second}:{after.version}"}
            answer.append(title | {"changes": [change_json(change) for change in changes]})
            continue
        heading(
            f"{first} v{before.version} → {second if second != first else ''} v{after.version}".replace("→  v", "→ v")
        )
        print_changes(changes)
    if as_json:
        print_json(answer)
    return 1 if differ else 0


def _check_both(old: str, new: str) -> None:
    """If one looks like a release, the other must be one too, and both must be known."""
    from kafkascope.errors import UsageError
    from kafkascope.schema.releases import check_release
    from kafkascope.schema.targets import parse_target

    kinds = []
    for text in (old, new):
        if text.replace(".", "").isdigit():
            check_release(text)
            kinds.append("a release")
        else:
            kinds.append(_kind(parse_target(text).api))
    if kinds[0] != kinds[1]:
        raise UsageError(f"{old} is {kinds[0]}, {new} is {kinds[1]}; compare two of a kind")


def _is_release(text: str) -> bool:
    return "." in text and text.replace(".", "").isdigit()


def _kind(api: str | None) -> str:
    return "an API" if api else "a message"
