"""Bad input and wrong use: one line on stderr, nothing on stdout, the documented exit code, and never a traceback."""

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kafkascope.schema.catalog import message
from kafkascope.schema.layouts.layout import describe_versions
from kafkascope.schema.releases import newest_release
from tests.support.cli import COMMAND, Cli, hear_interrupts, is_one_line_error, process

NOT_FOUND, WRONG_USE, BAD_INPUT, INTERRUPTED = 1, 2, 3, 130


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["show", "ShareFetchRequst"], NOT_FOUND, "did you mean ShareFetchRequest"),
        (["show", "zzz"], NOT_FOUND, "`kafkascope apis` lists them"),
        (["show", "999"], NOT_FOUND, "no API has key 999"),
        (["show", ""], NOT_FOUND, "unknown message or API '';"),
        (["show", ":"], WRONG_USE, ""),
        (["show", "²"], NOT_FOUND, ""),
        (["show", "9" * 5000], NOT_FOUND, ""),
        (["show", "ShareFetchRequest:7"], WRONG_USE, "it has 0-2"),
        (["show", "ShareFetchRequest:x"], WRONG_USE, "'x' isn't a version"),
        (["show", "ShareFetchRequest:²"], WRONG_USE, ""),
        (["show", "ShareFetchRequest:-1"], WRONG_USE, ""),
        (["show", "ShareFetchRequest:" + "9" * 5000], WRONG_USE, ""),
        (["show", "ShareFetchRequest:2", "--release", "4.1"], WRONG_USE, "releases that have it: 4.2+"),
        (["show", "ShareFetchRequest:2", "--release", "9.9"], WRONG_USE, f"it knows 0.8.2 to {newest_release()}"),
        (["show", "ShareFetch", "--schema"], WRONG_USE, "needs a version"),
        (["show"], WRONG_USE, "kafkascope show: NAME[:V] is missing (see"),
        (["show", "--nope", "Fetch"], WRONG_USE, "unknown option --nope (see"),
        (["show", "Fetch", "more"], WRONG_USE, "more"),
        (["shwo", "Fetch"], WRONG_USE, "unknown command shwo; did you mean show?"),
        (["xyz"], WRONG_USE, "the commands are apis, show"),
        (["--nope"], WRONG_USE, "unknown option --nope (see"),
        (["read", "--slower", "1"], WRONG_USE, "unknown option --slower; did you mean --slow?"),
        (["read", "--nope"], WRONG_USE, "unknown option --nope (see kafkascope read --help)"),
        (["groups", "h", "--timeout", "-1"], WRONG_USE, "--timeout: -1 isn't more than 0 and at most 86400 (see"),
        (["vectors", "README.md"], WRONG_USE, "README.md is a file; give a folder"),
        (["error", "INVALID_RECRD"], NOT_FOUND, "INVALID_RECORD, INVALID_RECORD_STATE or INVALID_REQUEST?"),
        (["decode", '{"a": 1}'], BAD_INPUT, "this is JSON, not bytes; kafkascope encode turns JSON into bytes"),
        (["read", "--grup", "x"], WRONG_USE, "unknown option --grup; did you mean --group?"),
        (["read", "--api"], WRONG_USE, "kafkascope read: --api needs a value (see"),
        (["read", "--json=1", "x"], WRONG_USE, "--json takes no value"),
        (["serve", "--port", "99999"], WRONG_USE, "--port: 99999 isn't between 0 and 65535"),
        (["serve", "--port", "x"], WRONG_USE, "--port: 'x' isn't a whole number"),
        (["completion"], WRONG_USE, "SHELL is missing; choose from bash, zsh, fish"),
        (["completion", "tcsh"], WRONG_USE, "SHELL: 'tcsh' isn't one of bash, zsh, fish"),
        (["lake", "inof", "x"], WRONG_USE, "kafkascope lake: unknown command inof; did you mean info?"),
        (["diff", "3.9"], WRONG_USE, "B is missing"),
        (["diff", "3.9", "5.0"], WRONG_USE, "release 5.0 isn't in the catalog"),
        (["diff", "3.9", "ShareFetch:1"], WRONG_USE, "3.9 is a release, ShareFetch:1 is an API; compare two of a kind"),
        (["diff", "ShareFetchRequest:1", "4.4"], WRONG_USE, "ShareFetchRequest:1 is a message, 4.4 is a release"),
        (["diff", "3.9", "99"], WRONG_USE, "release 99 isn't in the catalog"),
        (["diff", "9.9", "ShareFetch:1"], WRONG_USE, "release 9.9 isn't in the catalog"),
        (["diff", "3.9", "Nope"], NOT_FOUND, "unknown message or API Nope"),
        (["apis", "--release", "x"], WRONG_USE, "release x isn't in the catalog"),
        (["apis", "--release", ""], WRONG_USE, "release '' isn't in the catalog"),
        (["show", "ShareFetchRequest:2", "--release="], WRONG_USE, "release '' isn't in the catalog"),
        (["decode", "00", "--release", ""], WRONG_USE, "release '' isn't in the catalog"),
        (["encode", "HeartbeatRequest:0", "{}", "--release", ""], WRONG_USE, "release '' isn't in the catalog"),
        (["example", "HeartbeatRequest:0", "--release", ""], WRONG_USE, "release '' isn't in the catalog"),
        (["show", "DescribeTopicPartitions:x"], WRONG_USE, "use DescribeTopicPartitions:0"),
        (["changelog", "ShareFetch:2"], WRONG_USE, "takes no version"),
        (["errors", "--api", "TopicRecord"], WRONG_USE, "returns no errors"),
        (["errors", "--api", ""], NOT_FOUND, "unknown message or API ''"),
        (["errors", "--api="], NOT_FOUND, "unknown message or API ''"),
        (["errors", "--api", "ShareFetch:9"], WRONG_USE, "has no version 9"),
        (["error", "NOPE_NOPE"], NOT_FOUND, "unknown error NOPE_NOPE"),
        (["error", "9999"], NOT_FOUND, "unknown error code 9999"),
        (["error", ""], NOT_FOUND, "unknown error '';"),
        (["error", "org.example.NopeException"], NOT_FOUND, "unknown error org.example.NopeException"),
        (["error", "²"], NOT_FOUND, ""),
        (["example", "ShareFetch:2"], WRONG_USE, "use ShareFetchRequest:2 or ShareFetchResponse:2"),
        (["example", "ShareFetchRequest"], WRONG_USE, "needs a version"),
        (["encode", "HeartbeatRequest:99", "{}"], WRONG_USE, "it has 0-4"),
        (["encode", "TopicRecord:0", "{}", "--frame"], WRONG_USE, "has no header"),
        (["encode", "HeartbeatRequest:0", "{}", "--frame", "--correlation-id", "x"], WRONG_USE, "isn't a whole number"),
        (["encode", "HeartbeatRequest:0", "{}", "--frame", "--correlation-id", "4294967296"], BAD_INPUT, "int32"),
        (["encode", "HeartbeatRequest:0", "@/nowhere/at/all"], BAD_INPUT, "no such file"),
        (["decode", "000"], BAD_INPUT, "odd number of digits (3)"),
        (["decode", "00 0g 00", "--input", "hex"], BAD_INPUT, "'g' isn't a hex digit (digit 4)"),
        (["decode", "zz%"], BAD_INPUT, "isn't hex, a hex dump or base64"),
        (["decode", "!!", "--input", "base64"], BAD_INPUT, "this isn't base64"),
        (["decode", ""], BAD_INPUT, "empty"),
        (["decode", "-"], BAD_INPUT, "standard input is empty"),
        (["decode", "@/nowhere/at/all"], BAD_INPUT, "no such file"),
        (["decode", "@/dev/null"], BAD_INPUT, "is empty"),
        (["decode", "@"], WRONG_USE, "@ needs the name of a file after it, as in @frame.bin"),
        (["encode", "HeartbeatRequest:0", "@"], WRONG_USE, "@ needs the name of a file after it, as in @frame.bin"),
        (["decode", "@/"], BAD_INPUT, "is a directory"),
        (["decode", __file__], BAD_INPUT, f"{__file__} is a file; write @{__file__} to read it"),
        (["encode", "HeartbeatRequest:0", __file__], BAD_INPUT, f"{__file__} is a file; write @{__file__} to read it"),
        (["decode", "00", "--input", "raw"], WRONG_USE, "raw bytes can't be typed"),
        (["decode", "00", "--input", "nope"], WRONG_USE, "'nope'"),
        (["decode", "00000000", "--as", "ShareFetch:2"], WRONG_USE, "use ShareFetchRequest:2 or ShareFetchResponse:2"),
        (["decode", "00", "--as", "ShareFetchRequest:9"], WRONG_USE, "it has 0-2"),
        (["decode", "00", "--as", "ShareFetchRequest:2"], BAD_INPUT, "ShareFetchRequest v2"),
        (["decode", "00", "--release", "9.9"], WRONG_USE, "release 9.9"),
        (["vectors"], WRONG_USE, "DIR is missing"),
        (["vectors", __file__], WRONG_USE, "is a file"),
        (["vectors", "/proc/nowhere"], BAD_INPUT, "/proc/nowhere"),
        (["vectors", "/proc/nowhere", "--only", "ShareFetch:99"], WRONG_USE, "has no version 99"),
        (["vectors", "/proc/nowhere", "--only", "TopicRecord:99"], WRONG_USE, "has no version 99"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)  # fmt: skip
def test_it_is_one_line_with_its_exit_code(cli: Cli, arguments: list[str], code: int, message: str) -> None:
    answer = cli(*arguments)
    assert (answer.code, answer.out) == (code, ""), answer.err
    assert is_one_line_error(answer.err)
    assert message in answer.err
    # whatever was typed, a line stays a line that a person reads
    assert len(answer.err) < 700


def test_a_version_out_of_range_says_which_release_has_which() -> None:
    assert describe_versions(message("ShareFetchRequest")) == "it has 0-2 (v0 in 3.9-4.0; v1 in 4.1+; v2 in 4.2+)"
    # not one of these came with another, so none may stand under another's release
    versions = describe_versions(message("HeartbeatRequest"))
    assert "v4 in 2.4+" in versions
    assert "v0-4 in" not in versions


def test_the_bytes_are_never_in_the_message(cli: Cli) -> None:
    secret = b"hunter2-hunter2"
    frame = b"\x00\x24\x00\x02\x00\x00\x00\x01\xff\xff\x00" + b"\x7f" + secret
    answer = cli("decode", frame.hex())
    assert answer.code != 0
    assert "hunter2" not in answer.err
    assert secret.hex() not in answer.err
    assert "hunter2" not in cli("encode", "SaslAuthenticateRequest:0", '{"authBytes": "hunter2-hunter2!"}').err


def test_bytes_of_an_argument_that_are_no_text_are_refused() -> None:
    done = process("decode", b"\xff\xfe")
    assert (done.returncode, done.stdout) == (BAD_INPUT, b"")
    assert is_one_line_error(done.stderr.decode(errors="replace"))


@pytest.mark.parametrize("command", [["decode"], ["encode", "HeartbeatRequest:0"]], ids=" ".join)
def test_a_huge_file_is_refused_without_being_read(tmp_path: Path, command: list[str]) -> None:
    file = tmp_path / "huge"
    with file.open("wb") as sparse:
        sparse.truncate(2**30)
    # the same process reports its own peak, as it would if a person had run it
    script = (
        "import sys; from kafkascope.cli.main import main; code = main(sys.argv[1:]);"
        " print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *command, f"@{file}"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == BAD_INPUT
    assert is_one_line_error(done.stderr)
    assert int(done.stdout) < 150_000, f"{int(done.stdout) // 1024} MiB at the peak"


@pytest.mark.parametrize("command", [["decode"], ["encode", "HeartbeatRequest:0"]], ids=" ".join)
def test_an_endless_stream_is_refused(command: list[str]) -> None:
    def capped() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))

    with Path("/dev/zero").open("rb") as endless:
        done = subprocess.run(
            [COMMAND, *command, "-"], stdin=endless, capture_output=True, text=True, preexec_fn=capped
        )
    assert (done.returncode, done.stdout) == (BAD_INPUT, "")
    assert is_one_line_error(done.stderr)


def test_an_interrupt_is_130_and_quiet(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # opening for writing waits until the command has opened for reading, and so is in the middle of its work
    with (
        subprocess.Popen(
            [COMMAND, "decode", f"@{pipe}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=hear_interrupts,
        ) as running,
        pipe.open("wb"),
    ):
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    assert (running.returncode, out) == (INTERRUPTED, b"")
    assert b"Traceback" not in err


@pytest.mark.parametrize(
    "arguments", [["apis"], ["encode", "HeartbeatRequest:0", "{}", "--output", "raw"]], ids=" ".join
)
def test_a_full_disk_is_no_traceback(arguments: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == BAD_INPUT
    assert is_one_line_error(done.stderr)


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_a_closed_standard_stream_is_no_traceback(closed: str) -> None:
    done = subprocess.run(["bash", "-c", f'"$0" decode {closed}', COMMAND], capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert done.returncode != 0
