"""The static site: what it writes, and what it leaves alone."""

import json
import re
from pathlib import Path

import pytest

from kafkascope.cli.main import main
from kafkascope.errors import UsageError
from kafkascope.explorer import site as module
from kafkascope.explorer.address import address, relative
from kafkascope.explorer.assets import ASSETS
from kafkascope.explorer.kinds import KINDS
from kafkascope.explorer.render import json_of
from kafkascope.explorer.site import site
from kafkascope.explorer.site_folder import SITE_MARK, check

# Pages that are larger because their message is: docs/explorer.md lists them.
LARGEST = 100_000
DOCS = Path(__file__).parents[2] / "docs" / "explorer.md"


@pytest.fixture
def few_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three pages instead of all: these tests are about folders."""
    monkeypatch.setattr(module, "KINDS", tuple(kind for kind in KINDS if kind.name == "home"))


def test_every_page_is_written_with_its_facts(whole_site: Path) -> None:
    count = 0
    for kind in KINDS:
        for parameters in kind.every():
            page = whole_site / address(kind, parameters)
            assert page.is_file(), page
            facts = json.loads((page.parent / f"{page.name.removesuffix('.html')}.json").read_text(encoding="utf-8"))
            assert facts["title"]
            count += 1
    assert count == len(list(whole_site.rglob("*.html")))
    assert all((whole_site / name).is_file() for name in ASSETS)


def test_facts_of_the_site_are_those_of_the_server(whole_site: Path) -> None:
    for kind in KINDS:
        for parameters in list(kind.every())[:3]:
            file = whole_site / (address(kind, parameters).removesuffix(".html") + ".json")
            assert file.read_text(encoding="utf-8") == json_of(kind, parameters)


def test_pages_are_light_but_for_those_that_the_docs_list(whole_site: Path) -> None:
    heavy = {str(page.relative_to(whole_site)) for page in whole_site.rglob("*.html") if page.stat().st_size > LARGEST}
    weighs = DOCS.read_text(encoding="utf-8").partition("## What it weighs")[2].partition("\n## ")[0]
    assert heavy == set(re.findall(r"^\| `([^`]+\.html)` \|", weighs, re.MULTILINE))
    assert (whole_site / "search.js").stat().st_size < LARGEST


@pytest.mark.usefixtures("few_pages")
def test_a_folder_with_other_things_is_refused_and_stays(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="--force"):
        site(folder)
    assert [file.name for file in folder.iterdir()] == ["thesis.txt"]
    assert [file.name for file in tmp_path.iterdir()] == ["docs"]


@pytest.mark.usefixtures("few_pages")
def test_force_writes_beside_other_things_and_removes_none(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    site(tmp_path, force=True)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"
    assert (tmp_path / "index.html").is_file()


@pytest.mark.usefixtures("few_pages")
def test_a_former_site_is_replaced_and_what_it_has_no_more_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "site"
    assert site(folder) == 1
    stale = folder / "old" / "stale.html"
    stale.parent.mkdir()
    stale.write_text("of an older version")
    with (folder / SITE_MARK).open("a") as mark:
        mark.write("old/stale.html\n")
    site(folder)
    assert not stale.parent.exists()
    assert set((folder / SITE_MARK).read_text().splitlines()[1:]) == {
        file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file() and file.name != SITE_MARK
    }
    assert [file.name for file in folder.parent.iterdir()] == ["site"]


@pytest.mark.usefixtures("few_pages")
def test_own_files_stay_however_often_it_is_made(tmp_path: Path) -> None:
    (tmp_path / "CNAME").write_text("example.org")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref")
    for _ in range(3):
        site(tmp_path, force=True)
        assert (tmp_path / "CNAME").read_text() == "example.org"
        assert (tmp_path / ".git" / "HEAD").read_text() == "ref"
        assert (tmp_path / "index.html").is_file()


@pytest.mark.usefixtures("few_pages")
def test_a_site_with_a_file_of_its_owner_is_refused_and_the_file_named(tmp_path: Path) -> None:
    site(tmp_path)
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(UsageError, match=r"contains mine\.txt, which isn't part of a site.*--force"):
        site(tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "x"


@pytest.mark.usefixtures("few_pages")
def test_not_even_force_writes_over_a_file_of_the_owner(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("my own")
    with pytest.raises(UsageError, match=r"index\.html isn't part of an earlier site"):
        site(tmp_path, force=True)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("index.html", "my own")]


@pytest.mark.usefixtures("few_pages")
def test_a_mark_cannot_have_files_elsewhere_removed(tmp_path: Path) -> None:
    folder, outside = tmp_path / "site", tmp_path / "outside"
    site(folder)
    outside.mkdir()
    (outside / "precious").write_text("x")
    (folder / "link").symlink_to(outside)
    with (folder / SITE_MARK).open("a") as mark:
        mark.write(f"../outside/precious\n{outside}/precious\nlink/precious\n")
    site(folder, force=True)
    assert (outside / "precious").read_text() == "x"


@pytest.mark.usefixtures("few_pages")
def test_it_is_written_where_a_link_leads(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "dangling").symlink_to("new")
    for name in ("link", "link", "dangling"):
        site(tmp_path / name)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "index.html").is_file() and (tmp_path / "new" / "index.html").is_file()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["dangling", "link", "new", "real"]


@pytest.mark.usefixtures("few_pages")
def test_it_is_written_into_the_present_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    for _ in range(2):
        site(Path("."))
    assert Path("index.html").is_file()  # a shell that stands in it sees the new one
    assert [file.name for file in tmp_path.iterdir()] == ["here"]


@pytest.mark.usefixtures("few_pages")
def test_a_build_that_fails_leaves_no_folder_behind(tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:  # noqa: ARG001
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        site(tmp_path / "deep" / "site", stop)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("few_pages")
def test_a_build_that_stops_while_files_are_moved_is_made_whole_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site(tmp_path)
    moved: list[Path] = []

    def replace(source: Path, target: Path) -> None:
        if len(moved) == 3:
            raise KeyboardInterrupt
        moved.append(source.rename(target))

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", replace)
        with pytest.raises(KeyboardInterrupt):
            site(tmp_path)
    assert site(tmp_path) == 1


@pytest.mark.usefixtures("few_pages")
def test_a_build_that_fails_leaves_the_former_site(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    site(folder)
    before = (folder / "index.html").read_bytes()

    def stop(done: int, total: int) -> None:  # noqa: ARG001
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        site(folder, stop)
    assert (folder / "index.html").read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["site"]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="give a folder"):
        check(tmp_path / "file", force=False)


@pytest.mark.usefixtures("few_pages")
def test_the_command_says_what_it_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["site", str(tmp_path / "site")]) == 0
    assert "1 pages in" in capsys.readouterr().out
    assert main(["site", str(tmp_path / "site"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"folder": str(tmp_path / "site"), "pages": 1}
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("")
    assert main(["site", str(tmp_path / "other")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_links_are_relative_to_the_page() -> None:
    assert relative("index.html", "api/Fetch.html") == "api/Fetch.html"
    assert relative("message/FetchRequest/1.html", "api/Fetch.html") == "../../api/Fetch.html"
