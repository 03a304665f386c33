"""Answers for people are Kafka's JSON with comments: without those, every one is the JSON form itself."""

import json
import re

import pytest

from kafkascope.cli import terminal
from kafkascope.cli.live.response_view import print_value
from kafkascope.codec.json_form import parse_uuid, to_json
from kafkascope.limits import MAX_SHOWN_ITEMS
from kafkascope.schema.catalog import apis, message
from kafkascope.schema.layouts.examples import example
from kafkascope.schema.layouts.layout import LayoutField, layout
from kafkascope.schema.layouts.samples import THEMES, sample

ORDERS = parse_uuid("ZRMnDiaeTTeyp03kUua0OA")


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    terminal.colours.cache_clear()


def shown(capsys: pytest.CaptureFixture[str], name: str, version: int, value: dict[str, object], **how: bool) -> str:
    print_value(layout(name, version), value, {ORDERS: "orders"}, **how)
    return capsys.readouterr().out


def without_comments(text: str) -> str:
    return re.sub(r"  // [^\"\n]*$", "", text, flags=re.MULTILINE)


def has_bytes(fields: tuple[LayoutField, ...]) -> bool:
    return any(field.type in ("bytes", "records") or has_bytes(field.fields) for field in fields)


@pytest.mark.parametrize("api", apis().values())
def test_without_comments_it_is_kafkas_json(api: str, capsys: pytest.CaptureFixture[str]) -> None:
    name = f"{api}Response"
    for version in message(name).all_versions():
        message_layout = layout(name, version)
        values = [example(name, version), *(sample(message_layout, case) for case in range(len(THEMES) - 1))]
        for value in values if not has_bytes(message_layout.fields) else ():
            text = without_comments(shown(capsys, name, version, value, full=True))
            assert json.loads(text) == json.loads(json.dumps(to_json(name, version, value))), (name, version)


def test_codes_ids_and_keys_say_what_they_mean(capsys: pytest.CaptureFixture[str]) -> None:
    value = example("FetchResponse", 17) | {"errorCode": 70}
    text = shown(capsys, "FetchResponse", 17, value)
    assert '  "errorCode": 70,  // FETCH_SESSION_ID_NOT_FOUND\n' in text
    assert '"topicId": "ZRMnDiaeTTeyp03kUua0OA",  // orders\n' in text
    assert '"records": "… 107 bytes"\n' in text


def test_long_lists_are_cut_unless_all_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"apiKey": key, "minVersion": 0, "maxVersion": 1} for key in range(MAX_SHOWN_ITEMS + 7)]
    value = {"errorCode": 0, "apiKeys": rows}
    assert "… 7 more (--full shows all)" in shown(capsys, "ApiVersionsResponse", 0, value)
    assert '"apiKey": 106,  // not in the catalog' in shown(capsys, "ApiVersionsResponse", 0, value, full=True)


def test_nothing_in_a_text_steers_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "a\x7f\x9b2J\x1b[2J\u202e\u200b"
    value = example("FindCoordinatorResponse", 0) | {"host": hostile}
    text = shown(capsys, "FindCoordinatorResponse", 0, value)
    assert all(line.isprintable() for line in text.splitlines())
    assert "\\u007f\\u009b2J" in text
    topic = example("FetchResponse", 17)
    print_value(layout("FetchResponse", 17), topic, {ORDERS: hostile})
    assert all(line.isprintable() for line in capsys.readouterr().out.splitlines())
