"""Every kind of problem that the readers tell is in the docs, and none else."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
# `Problem("kind", …)`, `problems.add("kind", …)` and the helpers that end there.
REPORTED = re.compile(r'(?:Problem|problems\.add|add_problem|self\._count)\(\s*"([a-z_]+(?: [a-z]+)?)"')
# Of packets that are no TCP or cannot be read, by the code that the kernel gives.
BY_CODE = {
    "cut headers", "malformed", "link type", "tunnels", "pppoe", "erspan", "macsec", "gtp", "vxlan gpe",
}  # fmt: skip


def test_kinds_in_the_docs_are_those_of_the_code() -> None:
    sources = (ROOT / "src" / "kafkascope" / "capture").rglob("*.py")
    kinds = {kind for path in sources for kind in REPORTED.findall(path.read_text(encoding="utf-8"))}
    page = (ROOT / "docs" / "captures.md").read_text(encoding="utf-8")
    part = page[page.index("## What is broken") :].partition("\n## ")[0]
    assert set(re.findall(r"^\| `([a-z_ ]+)` \|", part, re.MULTILINE)) == kinds | BY_CODE
    assert "unfinished" in kinds
