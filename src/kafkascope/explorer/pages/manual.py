"""Pages of the manual: docs/ as it is in the repository, and an index in the groups of the README."""

from typing import Any

from kafkascope.explorer.facts.manual import (
    ManualPage,
    contents,
    find_page,
    manual_downloads,
    manual_groups,
    manual_pages,
)
from kafkascope.explorer.page import Kind, Page
from kafkascope.manual_files import manual_text


def make_index() -> Page:
    by_file = {page.file: page for page in manual_pages().values()}
    downloads = manual_downloads()

    def entry(file: str) -> dict[str, Any]:
        if file in downloads:
            return {"page": None, "file": file, "title": file.rpartition("/")[2], "about": downloads[file]}
        page = by_file[file]
        return {"page": page.name, "file": file, "title": page.title, "about": page.about}

    groups = [{"group": group, "entries": [entry(file) for file in files]} for group, files in manual_groups().items()]
    start = manual_pages()["README"]
    facts = {"start": {"page": start.name, "title": start.title, "about": start.about}, "groups": groups}
    return Page(
        "Manual", facts, "How to install and use kafkascope: commands, Python, live clusters, traffic analysis."
    )


def make(name: str) -> Page:
    page = find_page(name)
    text = manual_text(page.file)
    order = list(manual_pages().values())
    at = order.index(page)
    facts = {
        "page": name,
        "file": page.file,
        "group": page.group,
        "about": page.about,
        "contents": contents(text),
        "previous": _neighbour(order[at - 1] if at else None),
        "next": _neighbour(next(iter(order[at + 1 :]), None)),
        "markdown": text,
    }
    return Page(page.title, facts, f"{page.about[:1].upper()}{page.about[1:]}.")


def _neighbour(page: ManualPage | None) -> dict[str, str] | None:
    return None if page is None else {"page": page.name, "title": page.title}


MANUAL = Kind("manual", "docs/index.html", "manual.html", make_index, lambda: ({},))
MANUAL_PAGE = Kind(
    "manual_page", "docs/{name}.html", "manual_page.html", make, lambda: ({"name": name} for name in manual_pages())
)
