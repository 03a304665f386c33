"""The manual: every page of docs/ is a page of the explorer, and what it links to is there."""

import re
from pathlib import Path

import pytest
from starlette.applications import Starlette

from kafkascope.errors import NotFoundError
from kafkascope.explorer.assets import ASSETS
from kafkascope.explorer.facts.manual import manual_downloads, manual_groups, manual_pages
from kafkascope.explorer.facts.search.find import search
from kafkascope.explorer.kinds import KINDS
from kafkascope.explorer.manual_html import PICTURES, manual_html
from kafkascope.explorer.pages.manual import MANUAL_PAGE, make
from kafkascope.explorer.prose_links import ProseLinks
from kafkascope.explorer.render import Renderer
from kafkascope.explorer.server.app import create
from kafkascope.health.findings.rules.table import RULES
from kafkascope.manual_files import manual_text
from tests.explorer.asgi import ask
from tests.test_docs import PAGES, ROOT, anchors

RENDERER = Renderer(KINDS, static=True)


def rendered(markdown: str, file: str = "docs/check.md") -> str:
    def link(kind: str, /, **parameters: object) -> str | None:
        return RENDERER.link("docs/check.html", kind, parameters)

    return str(manual_html({"file": file, "markdown": markdown}, "docs/check.html", link))


@pytest.fixture(scope="module")
def app() -> Starlette:
    return create()


def test_every_page_of_the_repository_is_in_the_manual_in_the_groups_of_the_readme() -> None:
    assert {page.file for page in manual_pages().values()} == {path.relative_to(ROOT).as_posix() for path in PAGES}
    titles = re.findall(r"^### (.*)$", manual_text("README.md").partition("## Docs")[2], re.MULTILINE)
    assert [*manual_groups()] == titles
    assert len(titles) == 4


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_heading_has_its_section_and_every_word_is_there(path: Path) -> None:
    html = RENDERER.html(MANUAL_PAGE, {"name": path.stem})
    (title,) = re.findall(r"^# (.*)$", path.read_text(encoding="utf-8").partition("\n")[0])
    places = set(re.findall(r'<section id="([^"]*)">', html))
    assert places == anchors(path) - {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")}
    assert html.count("<section") == html.count("</section>")
    assert html.count('<div class="code">') == len(re.findall(r'<pre id="code-\d+" tabindex="0">', html))


def test_every_rule_has_a_section_that_the_report_can_link_to() -> None:
    html = RENDERER.html(MANUAL_PAGE, {"name": "findings"})
    assert [rule for rule in RULES if f'<section id="{rule}">' not in html] == []


def test_links_lead_to_pages_of_the_manual_and_other_files_are_words() -> None:
    html = rendered(
        "# T\n\n[limits.md](limits.md), [here](#json), [plans](pipeline.md#plans), [to](../CONTRIBUTING.md)\n"
    )
    assert '<a href="../docs/limits.html">Limits</a>' in html
    assert '<a href="#json">here</a>' in html
    assert '<a href="../docs/pipeline.html#plans">plans</a>' in html
    assert '<a href="../docs/CONTRIBUTING.html">to</a>' in html
    assert rendered("# T\n\n[the recordings](../tests/captures/README.md)\n") == "<p>the recordings</p>\n"
    assert '<a href="https://delta.io" rel="external noreferrer">Delta</a>' in rendered("[Delta](https://delta.io)")
    assert '<a href="../docs/explore.ipynb" download="">a notebook</a>' in rendered("[a notebook](explore.ipynb)")


def test_names_in_code_are_linked_once_where_they_can_only_be_one_thing() -> None:
    html = rendered("`ShareFetch` `ShareFetch` `INVALID_RECORD_STATE` `ShareFetchRequest:2` `GroupId` `exchanges`\n")
    assert html == (
        '<p><a href="../api/ShareFetch.html"><code>ShareFetch</code></a> <code>ShareFetch</code> '
        '<a href="../error/INVALID_RECORD_STATE.html"><code>INVALID_RECORD_STATE</code></a> '
        '<a href="../message/ShareFetchRequest/2.html"><code>ShareFetchRequest:2</code></a> '
        "<code>GroupId</code> <code>exchanges</code></p>\n"
    )
    assert rendered("[`ShareFetch`](limits.md)") == '<p><a href="../docs/limits.html"><code>ShareFetch</code></a></p>\n'


@pytest.mark.parametrize("word", ["ShareFetchRequest:99", "Nothing:1", "ShareFetchRequest:x", "share.version:2"])
def test_a_version_that_does_not_exist_is_only_code(word: str) -> None:
    links = ProseLinks(lambda kind, /, **parameters: f"{kind}{parameters}", "docs/check.html")
    assert links.code(word) == f"<code>{word}</code>"


def test_markup_in_a_page_is_text() -> None:
    html = rendered(
        "# T\n\n<script>a()</script>\n\n## <b>x</b>\n\na <img src=x> `<i>`\n\n```\n<u>\n```\n\n<!-- mark -->\n"
    )
    assert not re.search(r"<(script|b|i|u|img)[> ]", html)
    assert "&lt;script&gt;" in html
    assert "mark" not in html


def test_commands_of_a_transcript_are_marked_and_its_output_is_not() -> None:
    html = rendered("```console\n$ kafkascope apis  # lists\nFetch\n```\n\n```python\n>>> a = [\n... 1]\n2\n```\n")
    assert re.findall(r"<b>(.*?)</b>", html) == ["kafkascope apis  # lists", "a = [", "1]"]


def test_a_table_scrolls_has_a_name_and_no_style_of_its_own() -> None:
    html = rendered("## Limits\n\n| name | |\n|---|--:|\n| `a` | 1 |\n")
    assert '<div class="scroll" tabindex="0" role="region" aria-label="Table: Limits"><table>' in html
    assert "<th>name</th>" in html
    assert "<td></td>" in html
    assert "style" not in html


@pytest.mark.parametrize(
    ("query", "address"),
    [
        ("share_lock_expired", "docs/findings.html#share_lock_expired"),
        ("check manual", "docs/check.html"),
        ("cookbook", "docs/cookbook.html"),
        ("install", "docs/README.html#install"),
        ("documentation", "docs/index.html"),
    ],
)
def test_the_search_finds_pages_and_headings(query: str, address: str) -> None:
    assert address in [entry.address for entry in search(query)][:3]


def test_every_other_file_of_docs_is_a_file_of_the_site() -> None:
    others = {f"docs/{path.name}" for path in (ROOT / "docs").iterdir() if path.suffix != ".md"}
    assert {name for name in ASSETS if name.startswith("docs/")} == others
    assert others == {*PICTURES, *manual_downloads()}


def test_the_server_has_its_pages_pictures_and_notebook(app: Starlette) -> None:
    assert ask(app, "/docs/index.html").status == 200
    assert ask(app, "/docs/check.html").status == 200
    for name, kind in (("report.png", "image/png"), ("explore.ipynb", "application/x-ipynb+json")):
        answer = ask(app, f"/docs/{name}")
        assert (answer.headers["content-type"], answer.body) == (kind, (ROOT / "docs" / name).read_bytes())


def test_a_page_that_does_not_exist_suggests_those_of_its_kind(app: Starlette) -> None:
    with pytest.raises(NotFoundError, match="the manual has no page nothing"):
        make("nothing")
    answer = ask(app, "/docs/comands.html")
    assert answer.status == 404
    assert 'href="../docs/commands.html"' in answer.body.decode()
