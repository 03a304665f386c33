"""Changelogs, diffs, releases, upgrades and errors: every page is walked, and what it says is what the catalog says."""

import html
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from kafkascope.explorer.page import Kind
from kafkascope.explorer.pages import changelog, diff, error, errors, release, upgrade
from kafkascope.explorer.render import Renderer
from kafkascope.explorer.server.app import create
from kafkascope.schema.catalog import apis, index, message
from kafkascope.schema.errors.error_codes import cause_and_remedy, error_codes
from kafkascope.schema.errors.message_errors import errors_of
from kafkascope.schema.history.change_text import change_json
from kafkascope.schema.history.compare import Change, compare_layouts, compare_releases, versions_in
from kafkascope.schema.layouts.layout import LayoutField, layout
from kafkascope.schema.releases import release_order, releases
from kafkascope.schema.versions import format_versions
from tests.explorer.asgi import ask

NAMES = [release.name for release in releases()]


@pytest.fixture(scope="module")
def app() -> Starlette:
    return create()


def changes_of(changes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the words that only the page needs."""
    return [{key: change[key] for key in ("what", "path", "before", "after")} for change in changes]


def as_json(changes: list[Change]) -> list[dict[str, Any]]:
    return [change_json(change) for change in changes]


def paths(fields: tuple[LayoutField, ...], above: str = "") -> list[str]:
    return [
        path
        for field in fields
        for path in (above + field.kafka_name, *paths(field.fields, f"{above}{field.kafka_name}."))
    ]


def test_every_changelog_has_every_version_with_what_changed() -> None:
    for parameters in changelog.every():
        facts = changelog.make(**parameters).facts
        names = facts["messages"]
        versions = message(names[0]).all_versions()
        assert [row["version"] for row in facts["versions"]] == versions[::-1]
        for row in facts["versions"]:
            older = row["version"] - 1
            assert row["older"] == (older if older in versions else None)
            listed = {item["message"]: changes_of(item["changes"]) for item in row["changes"]}
            for name in names if older in versions else ():
                expected = as_json(compare_layouts(layout(name, older), layout(name, row["version"])))
                assert listed.get(name, []) == expected, (name, row["version"])


def test_every_message_has_a_changelog() -> None:
    listed = {name for parameters in changelog.every() for name in changelog.make(**parameters).facts["messages"]}
    assert listed == set(index())


def test_a_field_that_a_release_added_to_an_old_version_is_told() -> None:
    later = changelog.make("ApiVersions").facts["later"]
    assert ("3.4", "ApiVersionsResponse", "3", "ZkMigrationReady") in {
        (row["release"], row["message"], row["versions"], row["path"]) for row in later
    }


def test_every_diff_shows_every_field_of_both_versions_once() -> None:
    for parameters in diff.every():
        facts = diff.make(**parameters).facts
        for shown in facts["messages"]:
            old, new = layout(shown["name"], facts["a"]), layout(shown["name"], facts["b"])
            rows = shown["rows"]
            assert changes_of(shown["changes"]) == as_json(compare_layouts(old, new))
            assert [row["path"] for row in rows if row["after"]] == paths(new.fields), parameters
            assert sum(row["before"] is not None for row in rows) == len(paths(old.fields)), parameters
            for row in rows:
                assert (row["what"] == "added") == (row["before"] is None)
                assert (row["what"] == "removed") == (row["after"] is None)
                if row["what"] == "same":
                    # Encodings differ where the whole version went from classic to flexible.
                    before, after = ({**row[side], "encoding": ""} for side in ("before", "after"))
                    assert before == after


def test_a_diff_is_there_for_every_pair_of_neighbours() -> None:
    expected = {(n, str(a), str(b)) for n in index() for a, b in pairwise(message(n).all_versions())}
    assert expected <= {(parameters["name"], parameters["a"], parameters["b"]) for parameters in diff.every()}


def test_what_was_renamed_is_one_row_with_both_names() -> None:
    facts = diff.make("TxnOffsetCommitRequest", "2", "3").facts
    rows = {row["path"]: row for row in facts["messages"][0]["rows"]}
    assert rows["GenerationIdOrMemberEpoch"]["what"] == "added"
    assert rows["TransactionalId"]["what"] == "same"


@pytest.mark.parametrize("pair", [("0", "12"), ("12", "0"), ("3", "3")])
def test_any_pair_is_compared_on_the_server(app: Starlette, pair: tuple[str, str]) -> None:
    answer = ask(app, f"/diff/MetadataRequest/{pair[0]}-{pair[1]}.json")
    assert answer.status == 200
    old, new = (layout("MetadataRequest", int(version)) for version in pair)
    assert changes_of(answer.json["messages"][0]["changes"]) == as_json(compare_layouts(old, new))


def test_every_release_lists_the_versions_that_came_and_went() -> None:
    for before, name in pairwise(NAMES):
        facts = release.make(name).facts
        rows = {row["api"]: row for row in facts["apis"]}
        for api in apis().values():
            old, new = (set(versions_in(message(f"{api}Request"), item)) for item in (before, name))
            row = rows.get(api, {"came": [], "went": []})
            assert {item["version"] for item in row["came"]} == new - old, (name, api)
            assert set(row["went"]) == old - new, (name, api)
        assert [item["name"] for item in facts["errors"]] == [
            item.name for item in error_codes().values() if item.release == name
        ]


def test_records_of_a_release_are_those_that_changed() -> None:
    for before, name in pairwise(NAMES):
        facts = release.make(name).facts
        changed = {change.name for change in compare_releases(before, name)}
        listed: set[str] = set()
        for group in facts["records"]:
            for row in group["messages"]:
                both = (f"{row['name']}Key", f"{row['name']}Value")
                listed |= {row["message"]} if row["message"] else set(both)
        others = {item for item in changed if index()[item].kind not in ("request", "response")}
        assert listed == others, name


def test_every_upgrade_says_which_version_is_spoken() -> None:
    order = release_order()
    for parameters in upgrade.every():
        facts = upgrade.make(**parameters).facts
        old, new = facts["old"], facts["new"]
        assert order[old] < order[new]
        for step in facts["steps"]:
            request = message(f"{step['api']}Request")
            unstable = [{v for span, v in request.unstable if item in span} for item in (old, new)]
            mine, theirs = (set(versions_in(request, item)) - unstable[at] for at, item in enumerate((old, new)))
            assert step["oldVersions"] == (format_versions(list(mine)) or None)
            assert step["mixed"] == max(mine & theirs, default=None), (parameters, step["api"])
            expected = "gone" if not theirs else "new" if not mine else "broken" if not mine & theirs else None
            assert expected is None or step["verdict"] == expected
            assert (step["verdict"] in ("gone", "new", "broken")) == (expected is not None)
        listed = sum(step["verdict"] == "broken" for step in facts["steps"])
        assert facts["counts"]["broken"] == listed


def test_upgrades_lead_to_every_neighbour_and_to_the_newest() -> None:
    listed = {(parameters["a"], parameters["b"]) for parameters in upgrade.every()}
    assert listed == set(pairwise(NAMES)) | {(name, NAMES[-1]) for name in NAMES[:-1]}


def test_what_4_0_removed_breaks_an_old_client() -> None:
    steps = {step["api"]: step for step in upgrade.make("2.0", "4.0").facts["steps"]}
    assert steps["LeaderAndIsr"]["verdict"] == "gone"
    assert steps["OffsetForLeaderEpoch"]["verdict"] == "broken"
    assert steps["Fetch"]["mixed"] == 8
    removed = [c["path"] for item in steps["Fetch"]["changes"] for c in item["changes"] if c["what"] == "removed"]
    assert "ReplicaId" in removed


def test_an_error_that_the_old_client_does_not_know_is_named() -> None:
    steps = {step["api"]: step for step in upgrade.make("3.7", "4.0").facts["steps"]}
    assert "TRANSACTION_ABORTABLE" in error_names()
    for step in steps.values():
        for name in step["strangeErrors"]:
            assert release_order()["3.7"] < release_order()[error_names()[name]]


def error_names() -> dict[str, str]:
    return {item.name: item.release for item in error_codes().values()}


def test_any_two_releases_are_compared_on_the_server(app: Starlette) -> None:
    assert ask(app, "/upgrade/2.4-3.9.html").status == 200
    assert ask(app, "/upgrade/3.9.1-2.4.json").json["forward"] is False


def test_every_error_says_what_the_catalog_says() -> None:
    for item in error_codes().values():
        facts = error.make(item.name).facts
        cause, remedy = cause_and_remedy(item.name)
        assert (facts["code"], facts["retriable"], facts["since"]) == (item.code, item.retriable, item.release)
        assert (facts["cause"], facts["remedy"]) == (cause, remedy)
        assert (facts["java"] is None) == (item.exception is None)
        if item.exception:
            assert facts["java"]["exception"].endswith(f".{item.exception}")
            assert ("RetriableException" in facts["java"]["parents"]) == item.retriable
            assert facts["log"][0]["text"].startswith(facts["java"]["exception"])


def test_uses_of_errors_are_those_of_the_messages_at_every_version() -> None:
    from_pages = {
        (item.code, use["api"], version, tuple(use["fields"]), use["origin"])
        for item in error_codes().values()
        for use in error.make(item.name).facts["uses"]
        for version in _versions(use["versions"])
    }
    from_catalog = {
        (message_error.error.code, api, version, message_error.fields, message_error.origin)
        for api in apis().values()
        for version in message(f"{api}Response").all_versions()
        for message_error in errors_of(message(f"{api}Response"), version)
    }
    assert from_pages == from_catalog


def _versions(text: str) -> list[int]:
    versions_listed: list[int] = []
    for part in text.split(", "):
        first, _, last = part.partition("-")
        versions_listed += range(int(first), int(last or first) + 1)
    return versions_listed


def test_the_words_of_the_broker_stand_beside_the_code() -> None:
    uses = {use["api"]: use for use in error.make("INVALID_RECORD_STATE").facts["uses"]}
    assert uses["ShareFetch"]["fields"] == ["Responses.Partitions.AcknowledgeErrorCode"]
    assert uses["ShareFetch"]["messageFields"] == ["Responses.Partitions.AcknowledgeErrorMessage"]


@pytest.mark.parametrize("query", ["25", "UNKNOWN_MEMBER_ID", "unknown_member_id", "UnknownMemberIdException"])
def test_an_error_is_found_by_code_name_and_exception(app: Starlette, query: str) -> None:
    assert ask(app, f"/error/{query}.json").json["code"] == 25


def test_the_list_of_errors_has_every_code_once() -> None:
    assert [item["code"] for item in errors.make().facts["errors"]] == list(error_codes())


def strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.values() for text in strings(item)]
    if isinstance(value, list):
        return [text for item in value for text in strings(item)]
    return [value] if isinstance(value, str) else []


# Facts of a page that it shows as something else: a sign, a link, a word of another kind.
SILENT = {
    "sentBy",
    "sign",
    "what",
    "verdict",
    "kind",
    "encoding",
    "encodings",
    "group",
    "family",
    "path",
    "before",
    "after",
    "name",
    "type",
}


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (changelog.KIND, {"name": "ShareFetch"}),
        (changelog.KIND, {"name": "PartitionRecord"}),
        (diff.KIND, {"name": "FetchRequest", "a": "12", "b": "13"}),
        (release.KIND, {"release": "4.4"}),
        (release.KIND, {"release": "0.8.2"}),
        (upgrade.KIND, {"a": "4.3", "b": "4.4"}),
        (error.KIND, {"name": "FENCED_STATE_EPOCH"}),
        (errors.KIND, {}),
    ],
)
def test_a_page_shows_its_facts(kind: Kind, parameters: dict[str, str]) -> None:
    page = kind.make(**parameters)
    written = re.sub(r"</?(?:a|code)\b[^>]*>", "", Renderer().html(kind, parameters, page))
    shown = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", written)).split())
    facts = {key: value for key, value in page.facts.items() if key not in ("origins", "newest", "coverage")}

    def visit(value: Any, key: str = "") -> None:
        if isinstance(value, dict):
            for inner, item in value.items():
                visit(item, inner)
        elif isinstance(value, list):
            for item in value:
                visit(item, key)
        elif isinstance(value, str) and value and key not in SILENT | {"remedy", "exception", "origin", "messages"}:
            assert " ".join(value.split()) in shown, (key, value)

    visit(facts)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/changelog/SharFetch.html", "ShareFetch"),
        ("/diff/ShareFetch/1-9.html", "ShareFetch has no version 9"),
        ("/diff/ShareFetch/1-x.html", "ShareFetch has no version x"),
        ("/release/4.45.html", "4.4"),
        ("/upgrade/4.3-9.9.html", "9.9"),
        ("/error/FENCED_STATE_EPOC.html", "FENCED_STATE_EPOCH"),
        ("/error/9999.html", "9999"),
        ("/record/PartitionRecor/0.html", "PartitionRecord"),
        ("/record/PartitionRecord/9.html", "PartitionRecord has no version 9"),
        ("/record/ShareFetchRequest/2.html", "ShareFetchRequest"),
    ],
)
def test_what_is_not_there_is_404_and_says_what_is(app: Starlette, path: str, message: str) -> None:
    answer = ask(app, path)
    assert answer.status == 404
    assert message in answer.text
    assert "Traceback" not in answer.text


@pytest.mark.parametrize(
    "path", ["/changelog/{}.html", "/diff/{}/1-2.html", "/diff/Fetch/{}-2.html", "/release/{}.html",
             "/upgrade/{}-4.4.html", "/error/{}.html", "/record/{}/0.html"]
)  # fmt: skip
def test_markup_in_an_address_comes_out_as_text(app: Starlette, path: str) -> None:
    answer = ask(app, path.format('<img src=x onerror="alert(1)">'))
    assert answer.status == 404
    assert "<img" not in answer.text


def test_every_address_of_the_side_by_side_is_there(app: Starlette) -> None:
    text = (Path(__file__).parents[2] / "docs" / "seed-messages.md").read_text()
    addresses = re.findall(r"`([a-z]+(?:/[\w.-]+)*\.html)(?:#(\w+))?`", text)
    assert len(addresses) > 15
    for address, fragment in addresses:
        answer = ask(app, f"/{address}")
        assert answer.status == 200, address
        assert not fragment or f'id="{fragment}"' in answer.text, (address, fragment)


@pytest.mark.parametrize(
    ("name", "version", "count"),
    [("ShareGroupDescribe", 1, 8), ("StreamsGroupHeartbeat", 0, 15), ("ShareFetch", 2, 12), ("DescribeQuorum", 1, 0)],
)
def test_the_side_by_side_counts_errors_right(name: str, version: int, count: int) -> None:
    errors_known = errors_of(message(f"{name}Response"), version)
    assert sum(item.origin == "definition" for item in errors_known) == count
