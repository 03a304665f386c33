"""The Tab key: messages, versions, errors and releases, as click's own completion asks for them."""

import pytest
from click.shell_completion import BashComplete, ShellComplete

from kafkascope.cli.live.check_targets import WHAT
from kafkascope.cli.main import COMMANDS, commands
from kafkascope.schema.catalog import apis, index
from kafkascope.schema.releases import releases
from tests.support.cli import process


def complete(*words: str) -> list[str]:
    """What stands after the last word; that one is unfinished."""
    shell: ShellComplete = BashComplete(commands, {}, "kafkascope", "_KAFKASCOPE_COMPLETE")
    return [item.value for item in shell.get_completions(list(words[:-1]), words[-1])]


def test_commands() -> None:
    assert complete("") == COMMANDS
    assert complete("de") == ["decode", "describe"]


def test_check_offers_what_it_can_check_once() -> None:
    assert complete("check", "") == list(WHAT)
    assert complete("check", "quorum", "") == []


def test_options() -> None:
    assert "--json" in complete("show", "--")
    assert {"--as", "--release", "--input"} <= set(complete("decode", "--"))
    assert complete("decode", "--input", "b") == ["base64"]


def test_show_offers_apis_and_messages_in_any_case() -> None:
    offered = complete("show", "sharef")
    assert offered == ["ShareFetch", "ShareFetchRequest", "ShareFetchResponse"]


def test_nothing_typed_offers_all() -> None:
    assert len(complete("show", "")) == len(apis()) + len(index())


@pytest.mark.parametrize("command", ["encode", "example"])
def test_messages_alone_where_an_api_would_be_wrong(command: str) -> None:
    assert complete(command, "ShareFetch") == ["ShareFetchRequest", "ShareFetchResponse"]
    assert complete("decode", "--as", "ShareFetchRe") == ["ShareFetchRequest", "ShareFetchResponse"]


def test_versions_behind_a_colon_newest_first() -> None:
    assert complete("encode", "ShareFetchRequest:") == [f"ShareFetchRequest:{version}" for version in (2, 1, 0)]
    assert complete("example", "FetchRequest:1") == [
        f"FetchRequest:{v}" for v in (18, 17, 16, 15, 14, 13, 12, 11, 10, 1)
    ]


@pytest.mark.parametrize("command", ["show", "diff"])
def test_versions_of_an_api_behind_a_colon(command: str) -> None:
    assert complete(command, "ShareFetch:") == ["ShareFetch:2", "ShareFetch:1", "ShareFetch:0"]


def test_a_name_that_is_none_offers_nothing() -> None:
    assert complete("show", "zzz") == []
    assert complete("show", "zzz:") == []


def test_errors() -> None:
    assert complete("error", "invalid_rec") == ["INVALID_RECORD", "INVALID_RECORD_STATE"]


def releases_of(prefix: str) -> list[str]:
    return [release.name for release in releases() if release.name.startswith(prefix)]


def test_releases() -> None:
    assert complete("show", "--release", "4.") == releases_of("4.")
    assert complete("apis", "--release", "0.9") == ["0.9"]


def test_diff_offers_releases_too() -> None:
    assert complete("diff", "4.") == releases_of("4.")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_script_and_its_answers(shell: str) -> None:
    script = process("completion", shell)
    assert (script.returncode, script.stderr) == (0, b"")
    assert f"_KAFKASCOPE_COMPLETE={shell}_complete".encode() in script.stdout
    # fish gives the unfinished word itself, the others its place
    word = "ShareF" if shell == "fish" else "2"
    answer = process(COMP_WORDS="kafkascope show ShareF", COMP_CWORD=word, _KAFKASCOPE_COMPLETE=f"{shell}_complete")
    assert b"ShareFetchRequest" in answer.stdout
    assert answer.stderr == b""
