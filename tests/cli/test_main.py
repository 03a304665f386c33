"""The door: help, version, one command at a time, and a process that behaves like any other."""

import json
import subprocess
import sys

import pytest

import kafkascope
from kafkascope.cli import main as module
from kafkascope.cli.main import COMMANDS, FIRST_COMMANDS, GROUPS
from kafkascope.cli.output import json_text
from tests.support.cli import COMMAND, Cli, process


def test_without_arguments_it_is_the_help(cli: Cli) -> None:
    answer = cli()
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == cli.out("--help")


def test_the_help_lists_every_command_once_by_what_it_is_for(cli: Cli) -> None:
    out = cli.out("-h", COLUMNS="80")
    for command in COMMANDS:
        assert out.count(f"\n  {command} ") == 1
    assert "..." not in out.split("Options:")[1]
    assert [title in out for title in GROUPS] == [True] * len(GROUPS)


def test_the_examples_of_the_help_are_commands(cli: Cli) -> None:
    for example in FIRST_COMMANDS:
        assert example in cli.out("-h")
        assert example.split()[1] in COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_that_says_what_it_does(cli: Cli, command: str) -> None:
    out = cli.out(command, "--help")
    assert out.startswith(f"Usage: kafkascope {command} ")
    assert "--json" in out
    assert cli.out(command, "-h") == out


def test_the_version(cli: Cli) -> None:
    assert cli.out("--version") == f"kafkascope {kafkascope.__version__}\n"


def test_the_command_is_a_process_like_any_other() -> None:
    done = process("show", "ShareFetchRequest:2")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith("ShareFetchRequest v2\nAPI key 78 · ".encode())
    assert process("show", "ShareFetchRequst").returncode == 1
    assert process("shwo").returncode == 2
    assert process("decode", "000").returncode == 3


def test_an_encoded_frame_goes_through_pipes() -> None:
    value = process("example", "ShareFetchRequest:2").stdout
    raw = process("encode", "ShareFetchRequest:2", "--frame", "--output", "raw", stdin=value).stdout
    assert process("decode", "--json", stdin=raw).returncode == 0
    dumped = process("decode", stdin=raw).stdout.decode()
    assert value.decode().strip() in dumped


def test_the_module_of_the_door_does_not_read_arguments_of_others(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["pytest", "--nope"])
    assert cli("error", "121").code == 0


@pytest.mark.parametrize("arguments", [[], ["--help"], ["--version"], ["lake"]], ids=" ".join)
def test_help_that_cannot_be_written_is_one_line(arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 3
    assert done.stderr == b"kafkascope: cannot write the output: no space left on device\n"


@pytest.mark.parametrize("arguments", [[], ["--help"]], ids=" ".join)
def test_help_whose_reader_has_seen_enough_ends_quietly(arguments: list[str]) -> None:
    child = subprocess.Popen([COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout is not None and child.stderr is not None
    child.stdout.close()
    assert (child.stderr.read(), child.wait(60)) == (b"", 0)
    child.stderr.close()


def test_json_keeps_its_text_where_the_output_is_not_utf_8() -> None:
    arguments = ("decode", "--as", "ApiVersionsRequest:3", "03c3bc0100", "--json")
    plain = process(*arguments, PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", LC_ALL="C", PYTHONIOENCODING="ascii").stdout
    assert plain.isascii()
    assert json.loads(plain) == json.loads(process(*arguments, PYTHONUTF8="1").stdout)
    assert "\N{LATIN SMALL LETTER U WITH DIAERESIS}" in json.dumps(json.loads(plain), ensure_ascii=False)


def test_json_with_a_file_name_that_is_no_text_is_written() -> None:
    assert json.loads(json_text({"name": "\udcff"})) == {"name": "\udcff"}
    assert json_text({"name": "\udcff"}).isascii()


@pytest.mark.parametrize("cause", [KeyboardInterrupt(), None])
def test_ctrl_c_on_the_way_out_of_a_kernel_is_ctrl_c(
    monkeypatch: pytest.MonkeyPatch, cause: BaseException | None
) -> None:
    def kernel(_: list[str]) -> int:
        raise SystemError("returned a result with an exception set") from cause

    monkeypatch.setattr(module, "_answer", kernel)
    if cause is not None:
        assert module.main([]) == module.INTERRUPTED
    else:
        with pytest.raises(SystemError):
            module.main([])
