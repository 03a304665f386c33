"""`observe`: polls into a lake without a JVM, through restarts of the broker, until it is told to stop."""

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from kafkascope.cli.live.observe_run import POLLS_UNTIL_WELL, ObserveOptions, _Run
from kafkascope.client.observe.observer import FailedCall, Poll
from kafkascope.lake.home import open_lake
from kafkascope.lake.read.visible_rows import dataset
from lab.wire import until
from tests.hostile.child import run
from tests.support.cli import COMMAND, Cli, hear_interrupts, is_one_line_error
from tests.support.other_tools import arrow_rows

if TYPE_CHECKING:
    from lab.cluster import Cluster as Lab

NOBODY = "127.0.0.1:1"
WAIT_SECONDS = 120.0


def rows(lake: Path, name: str) -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = dataset(open_lake(str(lake)), name).to_table().to_pylist()
    return table


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--every", "0s"), "--every: 0 isn't a time to wait"),
        (("--every", "often"), "isn't a duration"),
        (("--once", "--for", "5s"), "--for has no effect"),
    ],
)
def test_flags_that_say_nothing_are_refused(cli: Cli, tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    answer = cli("observe", NOBODY, "--lake", str(tmp_path / "lake"), *arguments)
    assert answer.code == 2
    assert says in answer.err
    assert is_one_line_error(answer.err)


def test_an_empty_lake_is_not_this_folder(cli: Cli) -> None:
    answer = cli("observe", NOBODY, "--lake", "")
    assert (answer.code, "--lake: the name of the folder is empty" in answer.err) == (2, True)


def test_what_goes_wrong_is_said_once_until_it_was_well_for_long(capsys: pytest.CaptureFixture[str]) -> None:
    nothing = SimpleNamespace(exchanges=0, commits=0)
    options = ObserveOptions("lake", 1, None, False, (), 1)
    run = _Run(options, cast("Any", None), cast("Any", SimpleNamespace(totals=nothing)), cast("Any", None))

    def say(*details: str) -> str:
        run.polled += 1
        run._say(Poll(0, failures=[FailedCall(0, "Metadata", detail) for detail in details]))
        return capsys.readouterr().err

    assert say("a: no answer", "a: no answer") == "kafkascope: a: no answer\n"
    assert say() == ""
    assert say("a: no answer", "b: gone") == "kafkascope: b: gone\n"
    assert [say() for _ in range(POLLS_UNTIL_WELL)] == [""] * POLLS_UNTIL_WELL
    assert say("a: no answer") == "kafkascope: a: no answer\n"


def test_a_cluster_that_is_not_there_exits_with_4_and_leaves_no_lake(cli: Cli, tmp_path: Path) -> None:
    answer = cli("observe", NOBODY, "--lake", str(tmp_path / "lake"))
    assert answer.code == 4
    assert is_one_line_error(answer.err)
    assert not (tmp_path / "lake").exists()


def test_one_poll_lands_in_the_tables_of_ingest(cluster: "Lab", cli: Cli, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    document = json.loads(cli.out("observe", cluster.bootstrap, "--lake", str(lake), "--once", "--json"))
    assert (document["polls"], document["commits"], document["unanswered"], document["quarantined"]) == (1, 1, 0, 0)
    exchanges = rows(lake, "exchanges")
    assert len(exchanges) == document["exchanges"] == document["rows"]["exchanges"]
    assert {row["status"] for row in exchanges} == {"answered"}
    assert {"DescribeQuorum", "ListGroups", "Metadata", "ApiVersions"} <= {row["api"] for row in exchanges}
    assert {row["client_software"] for row in exchanges if row["api"] != "ApiVersions"} == {
        row["client_software"] for row in rows(lake, "connections")
    }
    (quorum,) = rows(lake, "describe_quorum_response")
    assert quorum["topics"][0]["partitions"][0]["leader_id"] == 1
    (capture,) = rows(lake, "captures")
    assert capture["kind"] == "observe"


def test_a_second_run_adds_to_the_same_lake(cluster: "Lab", cli: Cli, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for _ in range(2):
        cli.out("observe", cluster.bootstrap, "--lake", str(lake), "--once")
    assert len(rows(lake, "captures")) == 2
    names = [row["exchange_id"] for row in rows(lake, "exchanges")]
    assert len(names) == len(set(names))


LOADED_MEANWHILE = """
async def handler(peer):
    request = await peer.greet()
    while True:
        # A kernel that a commit calls: it's loaded while this response is waited for, or never.
        while not headers._make_rows.signatures:
            await asyncio.sleep(0.01)
        await peer.answer(request, peer.metadata() if request.api == "Metadata" else {})
        request = await peer.request()
async def main():
    async with serving(handler) as address:
        asked = ObserveOptions(sys.argv[1], 10**9, None, True, (), 10**9)
        totals, _ = await _observe(Settings((address,), timeout=1000.0), asked)
        print(totals["unanswered"], totals["commits"], totals["exchanges"] > 1)
asyncio.run(main())
"""


def test_what_a_commit_needs_is_loaded_while_the_cluster_is_asked(tmp_path: Path) -> None:
    """A cluster that takes all of the time doesn't make `--once` longer than that."""
    imports = (
        "import asyncio\nfrom kafkascope.capture.frames import headers\nfrom kafkascope.cli.live.observe_run import *\n"
        "from kafkascope.cli.live.observe_run import _observe\nfrom kafkascope.client.settings import Settings\n"
        "from tests.client.servers import serving"
    )
    assert run(imports, LOADED_MEANWHILE, str(tmp_path / "lake"), timeout=1_200).output == "0 1 True"


def test_no_jvm_and_no_spark_are_loaded(cluster: "Lab", tmp_path: Path) -> None:
    program = (
        "import sys; from kafkascope.cli.main import main; code = main(sys.argv[1:]);"
        " print(code, 'pyspark' in sys.modules, 'py4j' in sys.modules)"
    )
    arguments = ["observe", cluster.bootstrap, "--lake", str(tmp_path / "lake"), "--once"]
    process = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    assert process.stdout.splitlines()[-1] == "0 False False"


@contextmanager
def observing(lake: Path, bootstrap: str, how: signal.Signals, code: int) -> Iterator[None]:
    running = subprocess.Popen(
        [COMMAND, "observe", bootstrap, "--lake", str(lake), "--every", "500ms", "--commit-every", "1s"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_interrupts,
    )
    try:
        until("a first commit", lambda: (lake / "captures" / "_delta_log").exists(), WAIT_SECONDS)
        yield
        running.send_signal(how)
        out, err = running.communicate(timeout=WAIT_SECONDS)
        assert running.returncode == code, err
        assert "Traceback" not in err
        assert "next: kafkascope marts" in out
    finally:
        if running.poll() is None:
            running.kill()
            running.communicate()


def last_answer(lake: Path) -> Any:
    return max((row["response_at"] for row in rows(lake, "exchanges") if row["response_at"]), default=None)


def test_it_survives_a_restart_of_the_broker_and_says_what_it_missed(cluster: "Lab", tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with observing(lake, cluster.bootstrap, signal.SIGTERM, 0):
        until("a first answer", lambda: last_answer(lake), WAIT_SECONDS)
        cluster.stop(1)
        try:
            until("polls in vain", lambda: any(row["lost_places"] for row in rows(lake, "captures")), WAIT_SECONDS)
            before = last_answer(lake)
        finally:
            cluster.start(1)
            cluster.wait_until_ready()
        until("answers again", lambda: last_answer(lake) > before, WAIT_SECONDS)
    holes = [row for row in rows(lake, "quarantine") if row["kind"] == "unreachable"]
    assert holes
    assert all(row["recorded_at"] is not None and cluster.bootstrap in row["detail"] for row in holes)
    captures = rows(lake, "captures")
    counted = sum(row["lost_places"] for row in captures)
    assert counted >= len(holes)
    exchanges = rows(lake, "exchanges")
    names = [row["exchange_id"] for row in exchanges]
    assert len(names) == len(set(names))
    # Those that the restart ended, and those of after it; whoever reads them.
    sent: Counter[str] = Counter()
    for row in exchanges:
        sent[row["connection_id"]] += row["request_bytes"]
    for connections in (rows(lake, "connections"), arrow_rows(str(lake / "connections")).to_pylist()):
        assert sorted((row["connection_id"], row["client_bytes"]) for row in connections) == sorted(sent.items())
    assert len(captures) > 2


def test_ctrl_c_commits_what_was_answered_until_then(cluster: "Lab", tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with observing(lake, cluster.bootstrap, signal.SIGINT, 130):
        pass
    captures = rows(lake, "captures")
    assert sum(row["exchanges"] for row in captures) == len(rows(lake, "exchanges"))
    assert not list((lake / "_ingests").glob("*.json"))
