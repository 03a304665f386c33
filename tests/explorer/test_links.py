"""Every link of the whole static site leads to a file and a place in it; no page asks anything of another host."""

import html
import re
from collections import Counter
from pathlib import Path
from posixpath import dirname, join, normpath
from urllib.parse import unquote

from kafkascope.explorer.facts.kips import kip_touches
from kafkascope.explorer.facts.manual import manual_pages
from kafkascope.explorer.facts.search.entries import entries
from kafkascope.manual_files import manual_text
from kafkascope.schema.kip_titles import kip_address

TARGET = re.compile(r'\s(?:href|src|action|poster|srcset|formaction|xlink:href)="([^"]*)"')
ID = re.compile(r'\sid="([^"]*)"')
# What a strict Content-Security-Policy would not run, and what would need one that is not strict.
INLINE = re.compile(
    r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son[a-z]+=|javascript:|<iframe|<object|<base", re.IGNORECASE
)


def test_every_internal_link_resolves(whole_site: Path) -> None:
    pages = {str(page.relative_to(whole_site)): page.read_text(encoding="utf-8") for page in whole_site.rglob("*.html")}
    places = {name: {html.unescape(id_) for id_ in ID.findall(text)} for name, text in pages.items()}
    files = {str(file.relative_to(whole_site)) for file in whole_site.rglob("*") if file.is_file()}
    seen: Counter[str] = Counter()
    wrong: set[str] = set()
    for name, text in pages.items():
        for raw in set(TARGET.findall(text)):
            target = html.unescape(raw)
            seen["links"] += 1
            if name.startswith("kip/") and target == kip_address(int(Path(name).stem)):
                # The proposal itself: a link, of which nothing is loaded.
                seen["wiki"] += 1
                assert f'<a href="{raw}"' in text
                continue
            if (
                "://" in target
                and name.startswith("docs/")
                and f"]({target})" in manual_text(manual_pages()[Path(name).stem].file)
            ):
                seen["manual"] += 1
                assert f'<a href="{raw}" rel="external noreferrer">' in text
                continue
            if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//", target):
                wrong.add(f"{name}: {target} leaves the site")
                continue
            path, _, fragment = target.partition("#")
            place = normpath(join(dirname(name), unquote(path))) if path else name
            if place not in files:
                wrong.add(f"{name}: {target} leads nowhere")
            elif fragment and unquote(fragment) not in places[place]:
                wrong.add(f"{name}: {target} has no such place")
    assert seen["links"] > 20_000
    assert seen["manual"] >= 1
    assert seen["wiki"] == len(kip_touches())
    assert not wrong, sorted(wrong)[:20]


def test_every_entry_of_the_search_leads_somewhere(whole_site: Path) -> None:
    known: dict[str, set[str]] = {}
    wrong = []
    for entry in entries():
        path, _, fragment = entry.address.partition("#")
        if path not in known:
            file = whole_site / path
            known[path] = (
                {html.unescape(i) for i in ID.findall(file.read_text(encoding="utf-8"))} if file.is_file() else set()
            )
        if not known[path] or (fragment and fragment not in known[path]):
            wrong.append(entry.address)
    assert not wrong, wrong[:20]


def test_no_page_holds_script_or_style_of_its_own(whole_site: Path) -> None:
    for page in whole_site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        match = INLINE.search(re.sub(r"<pre.*?</pre>", "", text, flags=re.DOTALL))
        assert not match, (page, match and match[0])


def test_ids_are_given_once_and_every_page_has_one_title(whole_site: Path) -> None:
    for page in whole_site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        twice = [name for name, count in Counter(ID.findall(text)).items() if count > 1]
        assert not twice, (page, twice)
        assert text.count("<h1") == 1, page
        assert text.count("<title>") == 1
        assert '<html lang="en">' in text
