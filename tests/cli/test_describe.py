"""Views of recorded answers fit every window, and say in words what they know and lack; flags are told and checked."""

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import click
import pytest

from kafkascope.cli import terminal
from kafkascope.cli.commands.live.describe import SeveralGroups, _show_groups
from kafkascope.cli.commands.live.describe import run as describe
from kafkascope.cli.describe.apis import show_apis
from kafkascope.cli.describe.cluster import show_cluster, show_features, show_transactions
from kafkascope.cli.describe.gaps import show_gaps
from kafkascope.cli.describe.group import show_group, show_groups
from kafkascope.cli.describe.quorum import show_quorum
from kafkascope.cli.describe.run_view import _once, _refresh, _view_or_none, printable
from kafkascope.cli.describe.share import short, show_share_group
from kafkascope.cli.describe.streams import show_streams_group
from kafkascope.cli.describe.topic import show_configs, show_topic
from kafkascope.cli.live.options import live_options
from kafkascope.cli.main import main
from kafkascope.cli.output import plain
from kafkascope.cli.tables import grid
from kafkascope.cli.units import number_runs
from kafkascope.client.describe.apis import apis_of, parse_client
from kafkascope.client.describe.cluster import cluster_of
from kafkascope.client.describe.configs import Resource, configs_of
from kafkascope.client.describe.features import features_of
from kafkascope.client.describe.gaps import error_gap
from kafkascope.client.describe.group import group_of
from kafkascope.client.describe.groups import GroupList, GroupListing, listed_groups
from kafkascope.client.describe.offsets import Offset
from kafkascope.client.describe.quorum import quorum_of
from kafkascope.client.describe.share_group import mark_stalled
from kafkascope.client.describe.topic import topic_of
from kafkascope.client.describe.transactions import TransactionList, transaction_of
from kafkascope.client.describe.values import NodeAddress
from kafkascope.errors import ReachError
from kafkascope.formatting import number
from lab.cluster import Cluster as Lab
from tests.client.describe import test_apis, test_group, test_quorum, test_share_group, test_streams_group, test_views
from tests.client.describe.recorded import answers
from tests.support.cli import Cli, is_one_line_error

WIDTHS = (40, 80, 140)
LACKS = (error_gap("lag", "ListOffsets", 29, "orders"), error_gap("more lag", "ListOffsets", 29, "orders"))


def quorum() -> None:
    show_quorum(quorum_of(test_quorum.frozen(), at_us=0, cluster_id="e_goiMUiRdSSAG9ui58VtA", gaps=LACKS))


def share() -> None:
    group = test_share_group.busiest()
    show_share_group(mark_stalled(group, group))


def streams() -> None:
    show_streams_group(test_streams_group.at("Reconciling", 5))


def classic() -> None:
    show_group(group_of(test_group.classic(), {("orders", 0): Offset(45, 1)}, test_group.ENDS, gaps=LACKS))


def groups() -> None:
    listings = [
        listing for value in answers("clients", 1, "ListGroups") for listing in listed_groups(value, test_views.NODE)
    ]
    show_groups(GroupList(tuple(listings), False, ()))


def cluster() -> None:
    metadata = {"clusterId": "abc", "topics": [test_views.TOPIC], "brokers": []}
    row = {"brokerId": 1, "host": "broker-1.example", "port": 9092, "rack": "a", "isFenced": True}
    described = {"clusterId": "abc", "brokers": [row], "clusterAuthorizedOperations": 1 << 8}
    show_cluster(cluster_of(described, metadata, None, None, LACKS))


def features() -> None:
    show_features(
        features_of({test_views.NODE: test_views.features(5, 29, 30), test_views.OTHER: test_views.features(4, 27, 29)})
    )


def topic() -> None:
    show_topic(topic_of(test_views.TOPIC, {}, {}, {0: ((4,), ())}, (), LACKS))


def transactions() -> None:
    late = transaction_of(test_views.LISTED, test_views.transaction("Ongoing", 0), test_views.NODE, 9_000_000)
    show_transactions(TransactionList((late,), (), ()))


def configs() -> None:
    show_configs(configs_of(answers("clients", 1, "DescribeConfigs")[0], Resource("topic", "java-2.8")), True)


def served() -> None:
    show_apis(apis_of({NodeAddress(1, "h:1"): test_apis.recorded()}, [parse_client("java 0.10.2")]), False)


SHOWN: dict[str, tuple[Callable[[], None], str]] = {
    "quorum": (quorum, "Voter node `1` didn't fetch"),
    "share-group": (share, "Stalled: orders-0"),
    "streams-group": (streams, "has yet to release active 0_1"),
    "group": (classic, "lag 5 in all"),
    "groups": (groups, "Describe on Cluster"),
    "cluster": (cluster, "1 without a leader"),
    "features": (features, "4.2-IV1"),
    "topic": (topic, "under-replicated"),
    "transactions": (transactions, "open beyond the timeout"),
    "configs": (configs, "min.insync.replicas"),
    "apis": (served, "Java clients from 2.1 on"),
}


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    monkeypatch.setenv("NO_COLOR", "1")
    terminal.colours.cache_clear()

    def use(columns: int) -> None:
        monkeypatch.setenv("COLUMNS", str(columns))
        terminal.width.cache_clear()

    yield use
    monkeypatch.undo()
    terminal.width.cache_clear()
    terminal.colours.cache_clear()


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("name", SHOWN)
def test_view_fits_the_window_and_says_what_matters(
    name: str, columns: int, window: Callable[[int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    show, expected = SHOWN[name]
    window(columns)
    show()
    output = capsys.readouterr().out
    assert " ".join(expected.split()) in " ".join(output.split())
    # a single word may be wider than a narrow window
    wide = [line for line in output.splitlines() if len(line) > columns and max(map(len, line.split())) < columns - 20]
    assert not wide, wide


def test_gaps_of_one_reason_stand_together(window: Callable[[int], None], capsys: pytest.CaptureFixture[str]) -> None:
    window(140)
    show_gaps(LACKS)
    assert " ".join(capsys.readouterr().out.split()).removeprefix("Not shown ") == (
        "lag, more lag: ListOffsets returned TOPIC_AUTHORIZATION_FAILED; it needs the ACL Describe on Topic orders"
    )


def test_grid_aligns_numbers_and_leaves_empty_columns_out(
    window: Callable[[int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    window(80)
    grid(("name", "lag", "rack", "note"), [("a", number(5), None, "x"), ("bb", number(1200), "", "")], "lag")
    assert capsys.readouterr().out.splitlines() == ["  name    lag  note", "  a         5  x", "  bb    1,200"]


def test_rows_become_paragraphs_where_the_window_is_narrow(
    window: Callable[[int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    window(40)
    grid(("topic", "partition", "end offset"), [("a-rather-long-topic-name", 3, 123456789)], "partition,end offset")
    assert capsys.readouterr().out.splitlines() == [
        "  topic a-rather-long-topic-name",
        "    partition 3  end offset 123456789",
    ]


def test_what_is_unknown_is_not_a_number() -> None:
    assert (number(None), number(0), number_runs([0, 1, 2, 5])) == ("?", "0", "0-2,5")


def test_member_ids_are_short_and_short_ones_whole() -> None:
    assert short("E9MaCOkPQG2lp1Gp9fExgA") == "E9MaCOkPQG2l"
    assert short("app-1") == "app-1"
    # a broker puts the client id, which members share, before the id of a classic member
    assert short("consumer-orders-1-c2aa4487-1443-4009-96f3-6c20d3fa8af2") == "c2aa4487…"
    assert short("c2aa4487-1443-4009-96f3-6c20d3fa8af2") == "c2aa4487…"


def test_a_look_as_json_is_one_line_that_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    view = GroupList((GroupListing("a\u2028b\x9b31m", "classic", "Empty", 0, NodeAddress(1, "h:1"), ""),), True, ())
    _refresh(view, show_groups, True, 1.0, False)
    (line,) = capsys.readouterr().out.splitlines()
    assert r"a\u2028b\u009b31m" in line


def test_a_look_that_finds_nobody_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    async def ask(_: Any) -> None:
        raise ReachError("a\x1b[2Jb: no answer")

    asyncio.run(_view_or_none(cast("Any", SimpleNamespace(look=nullcontext)), ask, True))
    assert "a\ufffd[2Jb: no answer; retrying" in capsys.readouterr().out


def test_a_group_with_the_empty_id_has_a_label(
    window: Callable[[int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    window(80)
    show_groups(GroupList((GroupListing("", "classic", "Empty", 0, test_views.NODE, ""),), True, ()))
    assert '""' in capsys.readouterr().out.splitlines()[-1].split()
    show_group(group_of({**test_group.classic(), "groupId": ""}, {}, {}))
    assert capsys.readouterr().out.splitlines()[0] == 'Classic group ""'


def test_a_committed_offset_past_the_end_is_said_and_hides_no_lag(
    window: Callable[[int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    window(140)
    committed = {("orders", 0): Offset(10**6, 1), ("orders", 1): Offset(3, 1)}
    show_group(group_of(test_group.classic(), committed, {("orders", 0): Offset(9, 1), ("orders", 1): Offset(9, 1)}))
    output = capsys.readouterr().out
    assert "lag 6 in all" in output and "-999,991" in output and "Committed past the end: orders-0." in output


def test_roles_that_are_not_known_are_open(window: Callable[[int], None], capsys: pytest.CaptureFixture[str]) -> None:
    window(140)
    cluster()
    output = capsys.readouterr().out
    assert "broker, ?" in output


def test_no_groups_are_not_none_where_some_may_be_left_out(
    window: Callable[[int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    window(140)
    assert _show_groups(SeveralGroups((), (), GroupList((), False, ()).lacks), show_group) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert text.startswith("No groups of this type that we can see. Not shown groups that we may not describe: ")
    assert text.endswith("all are listed with the ACL Describe on Cluster")
    _show_groups(SeveralGroups((), ()), show_group)
    assert capsys.readouterr().out == "No groups of this type.\n"


def test_transactions_that_nobody_knows_are_told_beside_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    described = transaction_of(test_views.LISTED, test_views.transaction("Ongoing", 0), test_views.NODE, 9_000_000)
    assert show_transactions(TransactionList((described,), ("no such id",), ())) == 1
    assert capsys.readouterr().err == "kafkascope: no such id\n"


def test_what_is_not_there_is_one_line_on_standard_error(cluster: Lab, cli: Cli) -> None:
    for view, name in (("configs", "topic:nosuch"), ("transactions", "nosuch"), ("topic", "nosuch")):
        for form in ((), ("--json",)):
            answer = cli("describe", view, cluster.bootstrap, name, *form)
            assert (answer.code, answer.out, is_one_line_error(answer.err)) == (1, "", True), (view, answer)
    beside = cli("describe", "configs", cluster.bootstrap, "topic:nosuch", "broker:1")
    assert beside.code == 1 and "broker 1" in beside.out


def test_names_that_would_steer_the_terminal_are_disarmed() -> None:
    group = test_group.classic()
    group["members"][0]["clientId"] = "app\033[2J\r"
    seen = printable(group_of(group, {}, {}))
    assert seen.members[0].client_id == "app\ufffd[2J\ufffd" and seen.group_id == "readers"
    shown: list[Any] = []
    _once(group_of(group, {}, {}), shown.append, as_json=False)
    assert shown == [seen]


def test_json_has_lists_and_objects_alone() -> None:
    seen = plain(test_share_group.busiest())
    assert seen["partitions"][0]["members"] and isinstance(seen["members"], list)
    assert seen["members"][-1]["assignment"][0] == {"topic": "orders", "partitions": [0]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["quorum", "--watch", "h:1"], "put HOST before it"),
        (["quorum", "h:1", "--watch", "0"], "isn't between"),
        (["quorum", "h:1", "--watch", "nan"], "isn't between"),
        (["share-group", "h:1", "--sample", "soon"], "--sample: 'soon'"),
        (["topic", "h:1"], "TOPIC is missing"),
        (["configs", "h:1", "broker:one"], "isn't a node id"),
        (["apis", "h:1", "--client", "java 9.9"], "isn't in the catalog"),
        (["quorums", "h:1"], "unknown command quorums; did you mean quorum?"),
    ],
)
def test_wrong_use_is_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error and len(error.splitlines()) == 1


@pytest.mark.parametrize("view", sorted(describe.commands))
def test_nobody_there_is_one_line_and_code_4(view: str, capsys: pytest.CaptureFixture[str]) -> None:
    name = ["x"] if view == "topic" else []
    assert main(["describe", view, "127.0.0.1:1", *name]) == 4
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_every_flag_of_every_view_is_told() -> None:
    page = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
    section = re.search(r"^## describe\n(.*?)(?=^## )", page, re.MULTILINE | re.DOTALL)
    assert section

    @click.command
    @live_options
    def connection(**_: Any) -> None: ...

    common = {parameter.name for parameter in connection.params}
    for name, command in describe.commands.items():
        assert f"`kafkascope describe {name} HOST" in section[1], name
        for parameter in command.params:
            if isinstance(parameter, click.Option) and parameter.name not in common:
                assert f"| `{parameter.opts[0]}" in section[1], f"{name} {parameter.opts[0]}"
