"""Pages of APIs and messages: all of them are walked, and what they show is what the catalog and the codec say."""

import ast
import html
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kafkascope
from kafkascope.cli.main import main
from kafkascope.explorer.facts.error_groups import error_groups
from kafkascope.explorer.facts.example import example_facts
from kafkascope.explorer.facts.json_lines import json_lines
from kafkascope.explorer.facts.kips import kip_touches
from kafkascope.explorer.page import Page
from kafkascope.explorer.pages import api, home, kip, message
from kafkascope.explorer.pages import field as field_page
from kafkascope.explorer.prose_links import ProseLinks
from kafkascope.explorer.render import Renderer
from kafkascope.schema.api_facts import api_facts, families, field_kips, kips_of
from kafkascope.schema.catalog import apis, index
from kafkascope.schema.catalog import message as read_message
from kafkascope.schema.errors.message_errors import errors_of
from kafkascope.schema.flows import flows
from kafkascope.schema.layouts.diagram import diagram
from kafkascope.schema.layouts.examples import example
from kafkascope.schema.layouts.layout import Layout, LayoutField, layout
from kafkascope.schema.layouts.typed_json import typed_json
from kafkascope.schema.prose import paragraphs, sentence
from kafkascope.schema.releases import newest_release, releases
from kafkascope.schema.values import named_values
from tests.support.pairs import CHUNKS, chunk_of

WIRE = ("request", "response", "header")
ALL = (*WIRE, "metadata", "key", "value", "data")


def every_message(chunk: int) -> Iterator[tuple[Layout, dict[str, Any]]]:
    """Records too: their pages are made of the same facts."""
    for parameters in chunk_of(list(message.every_of(ALL)), chunk):
        layout_found = message.find_layout(parameters["name"], parameters["version"], ALL)
        yield layout_found, message.message_facts(layout_found)


def listed(fields: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for field in fields:
        yield field
        yield from listed(field["fields"])


def known(
    fields: tuple[LayoutField, ...], above: tuple[str, ...] = (), place: tuple[str, ...] = ()
) -> Iterator[tuple[str, tuple[str, ...], LayoutField]]:
    for field in fields:
        names, places = (*above, field.kafka_name), (*place, field.source.name)
        yield ".".join(names), places, field
        yield from known(field.fields, names, places)


def cells(lane: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for item in lane["items"]:
        if "cell" in item:
            yield item
        else:
            yield from cells(item)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_fields_are_those_of_the_catalog(chunk: int) -> None:
    for layout_found, facts in every_message(chunk):
        shown, expected = list(listed(facts["fields"])), list(known(layout_found.fields))
        assert [field["path"] for field in shown] == [path for path, _, _ in expected], layout_found.title
        for field, (_, place, source) in zip(shown, expected, strict=True):
            assert field["nullable"] == source.nullable
            assert (field["tag"], field["default"]) == (source.tag, source.default)
            assert field["prose"] == sentence(layout_found.message, place)
            assert field["kips"] == field_kips(layout_found.message, place)
            named = named_values(layout_found.message, place, layout_found.version)
            assert [[v["name"] for v in block["values"]] for block in field["values"]] == [
                [v.name for v in block.values] for block in named
            ]
        assert facts["schema"] == typed_json(layout_found)
        assert facts["prose"] == list(paragraphs(layout_found.message))
        assert facts["kips"] == kips_of(layout_found.message, layout_found.version)
        assert facts["flexible"] == layout_found.flexible
        assert facts["releases"] == [str(span) for span in layout_found.message.releases_of(layout_found.version)]
        assert [version_shown["version"] for version_shown in facts["versions"]] == layout_found.message.all_versions()


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_wire_is_that_of_the_terminal_with_every_cell_once(chunk: int) -> None:
    for layout_found, facts in every_message(chunk):
        parts = {part["part"]: part for part in facts["wire"]}
        assert list(parts) == (["frame", "header", "body"] if layout_found.message.api else ["body"])
        shown = [(cell["path"], cell["cell"] == "tags", cell["size"]) for cell in cells(parts["body"]["lane"])]
        rows = [
            row
            for row in diagram(layout_found)
            if not (row.kind == "struct" and not (row.field and row.field.nullable))
        ]
        expected = [(".".join(row.path), row.kind == "tags") for row in rows]
        assert [item[:2] for item in shown] == expected, layout_found.title
        # An exact offset of the terminal's table is an exact offset here.
        if parts["body"]["starts"] == "frame":
            # ControlledShutdown v0 has a request header without client id: key, version, correlation id.
            start = 0 if not layout_found.message.api else 8 if layout_found.message.kind == "response" else 12
            for cell, row in zip(cells(parts["body"]["lane"]), rows, strict=True):
                if cell["position"]["from"] == "frame":
                    assert (cell["position"]["offset"], row.floating) == (row.offset + start, False), cell


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_errors_are_those_of_this_very_version_by_field(chunk: int) -> None:
    for layout_found, facts in every_message(chunk):
        shown = {
            (group["field"], error["name"], error["origin"]) for group in facts["errors"] for error in group["errors"]
        }
        expected = {
            (field, item.error.name, item.origin)
            for item in errors_of(layout_found.message, layout_found.version)
            for field in (item.fields or (None,))
        }
        assert shown == expected, layout_found.title


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_example_decodes_back_and_every_byte_is_named(chunk: int) -> None:
    for layout_found, facts in every_message(chunk):
        name, version, release = layout_found.message.name, layout_found.version, layout_found.release
        shown = facts["example"]
        data = bytes.fromhex(shown["hex"])
        if layout_found.message.api:
            request_key = None if layout_found.message.kind == "request" else (layout_found.message.api, version)
            frame = kafkascope.decode_frame(data, response_to=request_key, release=release)
            body = frame.body
            assert frame.exact
        else:
            body = kafkascope.decode(name, version, data, release)
        assert body is not None
        assert body.exact
        assert body.value == example(name, version, release)
        assert kafkascope.from_json(name, version, shown["json"], release).keys() <= body.value.keys()
        assert kafkascope.to_json(name, version, body.value, release) == shown["json"]
        assert "".join(byte_shown["hex"] for byte_shown in shown["bytes"]).replace(" ", "") == shown["hex"]
        at = 0
        for byte_shown in shown["bytes"]:
            assert byte_shown["start"] == at
            at = byte_shown["end"]
        assert at == len(data)
        # Every line of the JSON has bytes, or is inside of something that has.
        paths = {byte_shown["path"] for byte_shown in shown["bytes"]}
        for _, path in json_lines(shown["json"]):
            assert not path or any(other == path or other.startswith((f"{path}.", f"{path}[")) for other in paths), path
        keys = {cell["key"] for part in facts["wire"] for cell in cells(part["lane"])}
        for byte_shown in shown["bytes"]:
            key = re.sub(r"\[\d+\]", "", byte_shown["path"]) + ("#tags" if byte_shown["framing"] == "tags" else "")
            assert key in keys, (layout_found.title, key)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_python_to_copy_runs_and_holds(chunk: int) -> None:
    for layout_found, facts in every_message(chunk):
        text = next(use["text"] for use in facts["example"]["uses"] if use["language"] == "python")
        *lines, last = ast.parse(text).body
        names: dict[str, Any] = {}
        exec(compile(ast.Module(lines, []), layout_found.title, "exec"), names)
        assert isinstance(last, ast.Expr)
        assert eval(compile(ast.Expression(last.value), layout_found.title, "eval"), names) is True, layout_found.title  # noqa: S307


@pytest.mark.parametrize(
    ("name", "version"),
    [("ShareFetchRequest", "2"), ("DescribeQuorumResponse", "1"), ("StreamsGroupHeartbeatResponse", "0"),
     ("ShareGroupDescribeResponse", "1"), ("ReadShareGroupStateSummaryResponse", "0@4.0"), ("TopicRecord", "0"),
     ("ProduceRequest", "13"), ("SaslHandshakeRequest", "0")],
)  # fmt: skip
def test_commands_to_copy_work(name: str, version: str, capsys: pytest.CaptureFixture[str]) -> None:
    facts = message.message_facts(message.find_layout(name, version, ALL))
    for use in facts["example"]["uses"]:
        program, command, *arguments = shlex.split(use["text"]) if use["language"] == "shell" else ("", "", "")
        if command == "decode":
            assert main([command, *arguments, "--json"]) == 0
            assert json.loads(capsys.readouterr().out)["value"] == facts["example"]["json"]
        if command == "encode":
            assert main([command, *arguments]) == 0
            assert capsys.readouterr().out.strip() == facts["example"]["hex"]
        assert program in ("kafkascope", "")


def test_every_request_to_copy_could_be_sent(capsys: pytest.CaptureFixture[str]) -> None:
    for name in apis().values():
        newest = read_message(f"{name}Request").all_versions()[-1]
        layout_found = message.find_layout(f"{name}Request", str(newest), WIRE)
        text = next(use["text"] for use in example_facts(layout_found)["uses"] if use["with"] == "kafkascope call")
        assert main([*shlex.split(text)[1:], "--dry-run"]) == 0, name
        assert "not sent" in capsys.readouterr().out


def text_of(page: str) -> str:
    """Links and code are part of a sentence, other elements end it."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", re.sub(r"</?(?:a|code)\b[^>]*>", "", page))).split())


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_page_shows_its_facts(chunk: int) -> None:
    renderer = Renderer()
    for parameters in chunk_of(list(message.every()), chunk):
        page = message.make(**parameters)
        written = renderer.html(message.KIND, parameters, page)
        text = text_of(written)
        for field in listed(page.facts["fields"]):
            assert f'id="f-{field["path"]}"' in written
            assert field["prose"] is None or field["prose"].split("`")[0].strip() in text, field["path"]
            for named in field["values"]:
                assert all(value["name"] in text for value in named["values"])
        for group in page.facts["errors"]:
            assert all(error["name"] in text for error in group["errors"])
        assert html.escape(page.facts["schema"], quote=False) in written
        pairs = re.search(r'<pre id="example-json"[^>]*>(.*?)</pre>', written, re.DOTALL)
        assert pairs
        assert json.loads(html.unescape(re.sub(r"<[^>]*>", "", pairs[1]))) == page.facts["example"]["json"]
        bytes_shown = re.search(r'<div id="example-hex"[^>]*>(.*?)</div>', written, re.DOTALL)
        assert bytes_shown
        assert re.sub(r"<[^>]*>|\s", "", bytes_shown[1]) == page.facts["example"]["hex"]
        letters = "".join(html.unescape(row) for row in re.findall(r'data-as="([^"]*)"', bytes_shown[1]))
        assert letters == "".join(chr(b) if 32 <= b < 127 else "." for b in bytes.fromhex(page.facts["example"]["hex"]))


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_api_pages_say_what_the_catalog_says(chunk: int) -> None:
    for key, name in chunk_of(list(apis().items()), chunk):
        page = api.make(name)
        facts, known_facts = page.facts, api_facts(name)
        request = read_message(f"{name}Request")
        assert facts["key"] == key
        assert (facts["sentBy"], facts["tools"], facts["adminMethods"]) == (
            [*known_facts.sends],
            [*known_facts.tools],
            [*known_facts.admin],
        )
        assert [(a["operation"], a["resource"] or "", a["remark"] or "") for a in facts["acls"]] == [*known_facts.acls]
        assert facts["kips"] == kips_of(request)
        assert [row["version"] for row in facts["versions"]] == request.all_versions()[::-1]
        assert {row["name"] for row in facts["errors"]} == {item.error.name for item in errors_of(request)}
        assert facts["flows"], name
        text = text_of(Renderer().html(api.KIND, {"name": name}, page))
        for flow in facts["flows"]:
            assert any(step["api"] == name for step in flow["steps"])
            assert all(step["remark"] in text for step in flow["steps"])
        assert all(tool in text for tool in facts["tools"])


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_matrices_are_the_layouts_of_every_version_and_release(chunk: int) -> None:
    for name in chunk_of([name for name, entry in index().items() if entry.kind in ("request", "response")], chunk):
        source = read_message(name)
        matrix = next(m for m in api.make(str(source.api)).facts["matrices"] if m["message"] == name)
        by_version, by_release = matrix["byVersion"], matrix["byRelease"]
        for at, version in enumerate(by_version["versions"]):
            fields = {".".join(place): field for _, place, field in known(layout(name, version).fields)}
            assert {row["path"] for row in by_version["rows"] if row["cells"][at] != "no"} == fields.keys()
            for row in by_version["rows"]:
                if row["cells"][at] != "no":
                    field = fields[row["path"]]
                    mark = "tag" if field.tag is not None else "null" if field.nullable else "yes"
                    assert row["cells"][at] == mark
        order = [release.name for release in releases()]
        for at, column in enumerate(by_release["releases"]):
            for release in {column["first"], column["last"]}:
                served = source.versions_in(release)
                assert served is not None
                versions = [v for v in source.all_versions() if v in served]
                holding: dict[str, list[int]] = {}
                for version in versions:
                    for _, place, _ in known(layout(name, version, release).fields):
                        holding.setdefault(".".join(place), []).append(version)
                for row in by_release["rows"]:
                    cell = row["cells"][at]
                    places_held = holding.get(row["path"], [])
                    assert (cell == "all") == (places_held == versions), (name, release, row)
                    assert bool(cell) == bool(places_held)
        covered = [
            r for c in by_release["releases"] for r in order[order.index(c["first"]) : order.index(c["last"]) + 1]
        ]
        assert covered == [release for release in order if source.versions_in(release)], name


def test_every_api_is_in_a_conversation_and_every_conversation_is_of_apis() -> None:
    named = {step.api for flow in flows() for step in flow.steps}
    assert named == set(apis().values())
    assert all(step.sender != step.receiver and step.remark for flow in flows() for step in flow.steps)


def test_the_home_page_lists_every_api_once_and_the_newest_release() -> None:
    facts = home.make().facts
    names = [api_shown["name"] for family in facts["families"] for api_shown in family["apis"]]
    assert sorted(names) == sorted(apis().values())
    assert [family["family"] for family in facts["families"]] == list(families())
    assert facts["newest"] == newest_release()
    assert facts["changes"]["messages"]


def test_every_field_has_a_page_with_every_place_that_has_it() -> None:
    expected: dict[str, set[tuple[str, str]]] = {}
    for name in index():
        for version in read_message(name).all_versions():
            for _, place, source in known(layout(name, version).fields):
                expected.setdefault(source.source.name.lower(), set()).add((name, ".".join(place)))
    shown = {}
    for parameters in field_page.KIND.every():
        facts = field_page.make(**parameters).facts
        rows = [row for group in facts["groups"] for row in group["places"]]
        shown[parameters["name"].lower()] = {(row["message"], row["path"]) for row in rows}
        for row in rows:
            names = [".".join(place) for _, place, _ in known(layout(row["message"], row["newest"]).fields)]
            assert row["path"] in names
            assert row["prose"] == sentence(read_message(row["message"]), tuple(row["path"].split(".")))
    assert shown == expected


@pytest.mark.parametrize(
    ("title", "made"),
    [("message/NAME/VERSION", message.make("FetchRequest", "17")), ("api/NAME", api.make("Fetch"))],
    ids=["message", "api"],
)
def test_the_docs_name_every_key_of_the_facts(title: str, made: Page) -> None:
    text = (Path(__file__).parents[2] / "docs" / "explorer.md").read_text(encoding="utf-8")
    table = text.partition(f"What `{title}.json` contains")[2].partition("|\n\n")[0]
    keys = [key for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for key in re.findall(r"`(\w+)`", row)]
    assert sorted(keys) == sorted(made.facts)


def test_every_kip_of_the_catalog_has_a_page_that_says_where() -> None:
    expected = {kip.number for name in apis().values() for kip in api_facts(name).kips}
    expected |= {number for name in index() for _, numbers in read_message(name).kips for number in numbers}
    assert set(kip_touches()) == expected
    touched = kip.make("932").facts["touched"]
    assert {"ShareFetch", "ShareAcknowledge", "ShareGroupHeartbeat"} <= {row["name"] for row in touched}


@pytest.mark.parametrize("text", ["", "a`b`c", "`", "a`b", "<b>`<i>`"])
def test_prose_marks_code_and_escapes_the_rest(text: str) -> None:
    made = str(ProseLinks(lambda *_, **__: None, "index.html")(text))
    assert html.unescape(re.sub(r"</?code>", "`", made)) == text
    assert "<b>" not in made
    assert "<i>" not in made


def test_names_in_prose_are_links_where_they_are_first_mentioned() -> None:
    def link(kind: str, **parameters: str) -> str:
        return f"{kind}/{'/'.join(map(str, parameters.values()))}"

    fields = [
        {"name": "Topics", "path": "Topics", "fields": [{"name": "TopicId", "path": "Topics.TopicId", "fields": []}]}
    ]
    say = ProseLinks(link, "message/ShareFetchRequest/2.html", fields)
    assert str(say("ShareFetch fails with UNKNOWN_TOPIC_ID (KIP-932).")) == (
        '<a href="api/ShareFetch"><code>ShareFetch</code></a> fails with '
        '<a href="error/UNKNOWN_TOPIC_ID"><code>UNKNOWN_TOPIC_ID</code></a> (<a href="kip/932">KIP-932</a>).'
    )
    assert str(say("ShareFetch again: `TopicId`")) == (
        '<code>ShareFetch</code> again: <a href="#f-Topics.TopicId"><code>TopicId</code></a>'
    )
    # Words that look like names, and words that are names as well.
    assert str(say("Fetch and Vote, NOT_AN_ERROR, KIP-99999, JavaScript <b>")) == (
        "Fetch and Vote, NOT_AN_ERROR, KIP-99999, JavaScript &lt;b&gt;"
    )


def test_a_response_says_in_one_sentence_what_its_request_says_in_full() -> None:
    request, response = (
        text_of(Renderer().html(message.KIND, {"name": f"ShareFetch{kind}", "version": "2"}))
        for kind in ("Request", "Response")
    )
    first, *others = paragraphs(read_message("ShareFetchRequest"))
    assert first in request and all(part in request for part in others)
    assert first.partition(". ")[0] in response
    assert first not in response and not any(part in response for part in others)


def test_errors_that_the_same_fields_carry_are_listed_once() -> None:
    facts = message.make("ShareFetchResponse", "2").facts["errors"]
    groups = error_groups(facts)
    assert [len(group["fields"]) for group in groups] == [3, 1, 0]
    names = [error["name"] for group in groups for error in group["errors"]]
    assert len(names) == len(set(names))
    assert {
        (field, error["name"]) for group in groups for error in group["errors"] for field in group["fields"] or [None]
    } == {(group["field"], error["name"]) for group in facts for error in group["errors"]}


def test_json_lines_print_as_json_does() -> None:
    value: dict[str, Any] = {"a": [], "b": {}, "c": [1, {"d": "é\n"}], "e": None}
    assert "\n".join(text for text, _ in json_lines(value)) == json.dumps(value, indent=2, ensure_ascii=False)
