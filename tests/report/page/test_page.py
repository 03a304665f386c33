"""The page: one file that is whole, safe and readable by everybody, for every recorded incident."""

import re
from base64 import b64encode
from dataclasses import replace
from functools import cache
from hashlib import sha256
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import pytest

from kafkascope.health.findings.rules.table import RULES
from kafkascope.report.build import Report
from kafkascope.report.charts.timeline import Lane, Mark, timeline_figure
from kafkascope.report.html.prose import advice
from kafkascope.report.incident_words import consequence_words, consequences_of, finding_key
from kafkascope.report.json_form import report_json, text_of
from kafkascope.report.page.findings import command, figure_value, figures_of
from kafkascope.report.page.page import PARTS, page
from kafkascope.report.page.site import Site
from kafkascope.report.summaries.findings import EvidenceLink, ShownFinding
from tests.report.build import HOSTILE, MINUTE, NOON, delivery, finding, incident, report_of

NAMES = ("share", "streams", "quorum", "clients", "empty", "hostile")
VOID = {"meta", "input", "br", "wbr"}
# Of SVG, and what our own CSS may hold: nothing.
ADDRESS = re.compile(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]|@import|url\((?!#)", re.IGNORECASE)


class Tree(HTMLParser):
    """Checks that what is opened is closed, and remembers the tags."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs), f"{tag} has an attribute twice"
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts.setdefault(self._open[-1], []).append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def hostile() -> dict[str, list[Any]]:
    """Names that members, clients and topics may give themselves."""
    return {
        "share_deliveries": [
            delivery(group_id=HOSTILE, client_id=HOSTILE, topic=HOSTILE, member_id=HOSTILE, delivery_count=2)
        ],
        "streams_tasks": [
            {"group_id": HOSTILE, "member_id": HOSTILE, "client_id": HOSTILE, "subtopology_id": HOSTILE, "partition": 0}
            | {"role": "active", "from_at": NOON, "to_at": NOON + MINUTE, "ended_by": HOSTILE}
        ],
        "streams_group_health": [{"group_id": HOSTILE, "minute_at": NOON, "state": HOSTILE}],
        "streams_statuses": [{"group_id": HOSTILE, "name": HOSTILE, "detail": HOSTILE, "from_at": NOON, "members": 1}],
        "quorum_events": [{"occurred_at": NOON, "kind": HOSTILE, "detail": HOSTILE, "exchange_id": HOSTILE}],
        "quorum_replicas": [{"observed_at": NOON, "leader_id": 1, "leader_epoch": 1, "replica_id": 1, "role": HOSTILE}],
        "api_latency": [{"minute_at": NOON, "api": HOSTILE, "long_poll": False, "calls": 1, "max_us": 5}],
        "api_errors": [{"minute_at": NOON, "api": HOSTILE, "error": HOSTILE, "error_code": 9, "client_id": HOSTILE}],
        "throttling": [{"minute_at": NOON, "api": HOSTILE, "client_id": HOSTILE, "throttle_ms": 5}],
        "client_versions": [{"client_software": HOSTILE, "client_id": HOSTILE, "api": HOSTILE, "api_version": 3}],
        "findings": [
            finding(rule=HOSTILE, subject=HOSTILE, summary=HOSTILE, advice=HOSTILE, figures='{"<b>": "<b>"}')
            | {"evidence": [HOSTILE]}
        ],
    }


@cache
def report(name: str) -> Report:
    marts = {"empty": {"findings": []}, "hostile": hostile()}.get(name) or incident(name)
    with TemporaryDirectory() as folder:
        return report_of(Path(folder) / "lake", **marts)


@pytest.fixture(params=NAMES)
def text(request: pytest.FixtureRequest) -> str:
    return page(report(request.param))


@pytest.fixture
def tree(text: str) -> Tree:
    return Tree(text)


def test_every_tag_is_closed_and_every_id_is_its_own(tree: Tree) -> None:
    ids = [attributes["id"] for _, attributes in tree.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    references = [link["href"] for link in tree.all("a")] + [
        f"#{element['aria-labelledby']}" for element in labelled(tree)
    ]
    assert {str(target)[1:] for target in references} <= set(ids)


def labelled(tree: Tree) -> list[dict[str, str | None]]:
    return [attributes for _, attributes in tree.tags if "aria-labelledby" in attributes]


def test_it_names_no_other_place(text: str, tree: Tree) -> None:
    assert not ADDRESS.search(text)
    assert not {"link", "img", "iframe", "object", "form", "base"} & {tag for tag, _ in tree.tags}
    assert [attributes for attributes in tree.all("script") if attributes] == []


def test_only_its_own_style_and_script_may_run(text: str, tree: Tree) -> None:
    (policy,) = [
        element["content"] for element in tree.all("meta") if element.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy is not None and policy.startswith("default-src 'none'; ") and "unsafe" not in policy
    for tag in ("style", "script"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert f"{tag}-src 'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'" in policy
    for _, attributes in tree.tags:
        assert not [name for name in attributes if name == "style" or name.startswith("on")]


def test_headings_step_down_one_at_a_time(tree: Tree) -> None:
    levels = [int(tag[1]) for tag, _ in tree.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))


def test_the_parts_come_in_order_with_the_verdict_first(text: str) -> None:
    places = [text.index(f'id="{name}"') for name, _ in PARTS]
    assert places == sorted(places)


def test_every_picture_is_told_in_words_and_as_a_table(text: str, tree: Tree) -> None:
    # One with links is no image to a screen reader, but a group of them.
    pictures = [element for element in tree.all("svg") if element.get("role") in ("img", "group")]
    assert all(element["aria-label"] for element in pictures)
    assert all(element.get("aria-hidden") == "true" for element in tree.all("svg") if element not in pictures)
    for figure in re.findall(r"<figure.*?</figure>", text, re.DOTALL):
        assert (
            len(re.findall(r'<svg[^>]* role="(?:img|group)"', figure)) == 1 and "<table" in figure.split("<details")[1]
        )


def test_what_scrolls_can_be_reached_by_keyboard_and_has_a_name(tree: Tree) -> None:
    scrolling = [element for element in tree.all("div") if element.get("class") == "scroll"]
    assert all(
        element["tabindex"] == "0" and element["role"] == "region" and element["aria-label"] for element in scrolling
    )


def test_tables_have_captions_and_heads(text: str) -> None:
    for table in re.findall(r"<table.*?</table>", text, re.DOTALL):
        assert "<caption>" in table and 'scope="col"' in table and 'scope="row"' in table


def test_names_from_the_wire_stay_names() -> None:
    text = page(report("hostile"))
    assert text.count("<script>") == text.count("</script>") == 1
    assert "\x1b" not in text and "\u202e" not in text and "\0" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "onload" not in {name for _, attributes in Tree(text).tags for name in attributes}


def test_an_empty_part_says_why() -> None:
    text = page(report("empty"))
    for words in (
        "No rule found anything that needs action.",
        "Nothing with a time was recorded.",
        "No traffic of a share group was recorded.",
        "No heartbeat or description of a streams group was recorded.",
        "No traffic of the metadata quorum was recorded",
        "No call with a response was recorded.",
        "No response had an error.",
        "No client was throttled.",
        "Every frame could be decoded.",
        "No rule fired.",
    ):
        assert words in text, words


def test_no_content_of_a_record_is_in_it() -> None:
    """Those of the incident say so: `producer-payments says 9`, under `key-9`."""
    from tests.captures import capture

    contents = set(re.findall(rb"producer-[\w-]+ says \d+|key-\d+", capture("share")))
    assert len(contents) > 20
    text = page(report("share")) + text_of(report_json(report("share")))
    assert not [content for content in contents if content.decode() in text]


def test_the_incident_can_be_read_off_the_page() -> None:
    text = page(report("share"))
    assert "Needs attention" in text
    assert "was archived after 5 deliveries: no member of share group <code>processors</code> processed it." in text
    assert "accepted 120" in text and "lock expired 4" in text
    assert "hung; 12:07:26.300 – 12:07:29.400; lock expired 4" in text
    streams = page(report("streams"))
    assert "task 1_1; nobody held it; 12:08:00.366 – 12:08:04.601 (4.2 s); ended: taken" in streams
    quorum = page(report("quorum"))
    assert "one moment alone" not in quorum
    assert "node 3 leads in epoch 2" in quorum and "no leader for 2.1 s" in quorum
    assert "Node <code>2</code>, leader of the quorum, went down; node <code>3</code> took over after 2.1 s." in quorum


@pytest.mark.parametrize("name", ["share", "streams", "quorum", "clients"])
def test_every_finding_is_under_its_incident(name: str) -> None:
    """And the timeline leads to each incident."""
    findings = report(name).findings
    text = page(report(name))
    assert text.count('class="proof">') == len(findings.shown)
    timeline = text[text.index('id="timeline"') : text.index('id="incidents"')]
    for place, shown in enumerate(findings.incidents.shown, 1):
        assert f'id="incident-{place}"' in text
        assert (f'href="#incident-{place}"' in timeline) == (shown.severity != "info")


def test_findings_charts_rules_and_tiles_link_to_each_other() -> None:
    text = page(report("share"))
    findings = report("share").findings.shown
    for place, shown in enumerate(findings, 1):
        assert f'<article id="finding-{place}"' in text and f'href="#rule-{shown.rule}"' in text
        assert f'<section id="rule-{shown.rule}">' in text
    group = text[text.index('<details id="share-group-1"') :]
    assert group.count('href="#finding-') == sum(shown.subject_kind.startswith("share_") for shown in findings)
    assert text.count('href="#share-group-1">chart</a>') == group.count('href="#finding-')
    assert '<dt><a href="#incidents">incidents</a></dt>' in text and '<dt><a href="#unread">recordings</a></dt>' in text
    assert 'href="#cluster-1">chart</a>' in page(report("quorum"))


SITE = Site(
    home="../index.html",
    search="../search.html",
    pages={"APIs": "../index.html", "Lake": "index.html"},
    lake={"Overview": "index.html", "Report": "report.html"},
    here=("Lake", "Report"),
    exchange=lambda proof: f"exchange/{quote(proof.exchange_id)}.html",
    rule=lambda name: f"../docs/findings.html#{name}",
)


@pytest.mark.parametrize("name", NAMES)
def test_in_a_site_it_has_the_navigation_and_evidence_and_rules_are_links(name: str) -> None:
    shown = report(name)
    tree = Tree(page(shown, SITE))
    links = [str(link["href"]) for link in tree.all("a")]
    assert {"../index.html", "index.html", "report.html"} <= set(links)
    ids = {attributes["id"] for _, attributes in tree.tags if "id" in attributes}
    assert {link[1:] for link in links if link.startswith("#")} <= ids
    proofs = [proof.exchange_id for finding in shown.findings.shown for proof in finding.evidence]
    assert sorted(link for link in links if link.startswith("exchange/")) == sorted(
        f"exchange/{quote(proof)}.html" for proof in proofs
    )
    rules = {finding.rule for finding in shown.findings.shown} & RULES.keys()
    assert {link for link in links if "findings.html" in link} == {f"../docs/findings.html#{rule}" for rule in rules}


@pytest.mark.parametrize("name", NAMES)
def test_alone_it_has_no_link_to_a_site(name: str) -> None:
    tree = Tree(page(report(name)))
    assert [link["href"] for link in tree.all("a") if not str(link["href"]).startswith("#")] == []
    assert "form" not in {tag for tag, _ in tree.tags}


def test_commands_of_advice_are_blocks_that_can_be_copied() -> None:
    block = advice(
        "Read it: `kafkascope read F --exchange 'a b'`. Set `max.poll.records`, then `jcmd PID Thread.print`."
    ).text
    assert block.count('class="command"') == block.count(">Copy</button>") == 2
    assert "kafkascope read F --exchange 'a b'" in re.sub(r"</?span>", "", block)
    hung = re.sub(r"</?span>", "", advice("Take a dump (`jcmd PID Thread.print`). Then restart.").text)
    assert "Take a dump:</p>" in hung and "<p>Then restart.</p>" in hung
    assert "<p>Set <code>max.poll.records</code>, then </p>" in block and "<p></p>" not in block


def test_only_very_slow_calls_are_red() -> None:
    latency = {"minute_at": NOON, "api": "Metadata", "long_poll": False, "calls": 9, "p50_us": 5, "p99_us": 5}
    for max_us, kind in ((999_999, "q-max"), (1_000_000, "q-late")):
        with TemporaryDirectory() as folder:
            text = page(report_of(Path(folder) / "lake", api_latency=[latency | {"max_us": max_us}]))
        assert re.findall(r'<path d="[^"]*" class="(q-\w+)">', text) == [kind]


def test_a_member_that_disappeared_ends_with_a_cross_on_the_timeline() -> None:
    text = page(report("streams"))
    timeline = text[text.index('id="timeline"') : text.index('id="incidents"')]
    assert timeline.count('class="cross"') == 1
    # Once in the picture, once in the table.
    assert timeline.count('href="#streams-groups"') == 2 * 3


def test_bars_and_words_of_one_row_of_the_timeline_never_overlap() -> None:
    seconds = [(0, 5), (1, 60), (20, 24), (22, 23), (85, 86), (91, 92), (97, 98), (99, 100)]
    marks = [Mark(a, b, "t-warning", f"Incident {a} of a group, with many words", (f"{a}",), "x") for a, b in seconds]
    drawn = timeline_figure([Lane("incidents", tuple(marks))], 0, 100).text
    rows: dict[float, list[tuple[float, float]]] = {}
    for bar in re.finditer(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)".*?</a>', drawn):
        left, y, width = map(float, bar.groups())
        first, last = left, left + width
        for x, end, words in re.findall(r'<text x="([\d.]+)"[^>]*class="flag"( text-anchor="end")?>([^<]*)', bar[0]):
            long = len(words) * 7
            first, last = (min(first, float(x) - long), last) if end else (first, max(last, float(x) + long))
        rows.setdefault(y, []).append((first, last))
    assert sum(map(len, rows.values())) == len(seconds)
    for places in rows.values():
        assert all(last < first for (_, last), (first, _) in pairwise(sorted(places)))


def test_recordings_far_apart_have_a_break_between_them_and_names_of_their_own() -> None:
    after = NOON + 60 * MINUTE
    times = [(NOON, NOON + 10_000_000), (after, after + 20_000_000), (after + 15_000_000, after + 25_000_000)]
    captures = [
        {
            "ingest_id": "5d1f",
            "capture_uri": f"/night/{number}/a.pcap",
            "exchanges": 1,
            "first_at": first,
            "last_at": last,
        }
        for number, (first, last) in enumerate(times)
    ]
    with TemporaryDirectory() as folder:
        apart, together = (
            page(report_of(Path(folder) / name, captures=rows, findings=[]))
            for name, rows in (("apart", captures), ("together", captures[1:]))
        )
    assert "nothing recorded for 59 min 50 s" in apart
    assert "nothing recorded" not in together
    for number in range(3):
        assert f">{number}/a.pcap<" in apart


def test_a_finding_that_counts_whole_minutes_names_its_beginning_if_the_incident_came_later() -> None:
    findings = report("share").findings
    (incident,) = (incident for incident in findings.incidents.shown if incident.cause == "poison_record")
    (part,) = consequences_of(incident)
    (shown,) = (finding for finding in findings.shown if finding_key(finding) == finding_key(part))
    assert consequence_words(part, replace(shown, from_at=incident.from_at), incident) == shown.summary
    assert consequence_words(part, replace(shown, from_at=NOON), incident) == (
        f"{shown.summary.removesuffix('.')}, counted from 12:00:00 UTC on."
    )
    assert consequence_words(part, None, incident) == f"share_near_limit, `{part.subject}`"


def test_a_report_makes_the_same_page_again(text: str) -> None:
    assert text in {page(report(name)) for name in NAMES}


def test_evidence_can_be_pasted_into_a_shell() -> None:
    assert (
        command(EvidenceLink("ab12", capture_uri="my night.pcap")) == "kafkascope read 'my night.pcap' --exchange ab12"
    )
    assert command(EvidenceLink("ab12")) == "kafkascope read FILE --exchange ab12"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("bytes", 240_000_000.0, "240,000,000"),
        ("seconds", 2.097, "2.097"),
        ("records", 1234, "1,234"),
        ("lock_timeout_ms", 3000, "3 s"),
        ("p99_us", 4200, "4.2 ms"),
        ("highest_share", 0.25, "25 %"),
        ("minutes", 2.5, "2.5"),
        ("clients", "steady 3", "steady 3"),
        ("warm", True, "yes"),
    ],
)
def test_figures_carry_their_units(name: str, value: Any, words: str) -> None:
    assert figure_value(name, value) == words


def test_two_figures_of_one_name_are_told_apart() -> None:
    shown = ShownFinding("", "info", "", "", None, None, "", {"lag": 12, "lag_ms": 4900, "fetch_age_ms": 5}, "", (), 0)
    assert figures_of(shown) == [("lag", "12"), ("lag time", "4.9 s"), ("fetch age", "5 ms")]
