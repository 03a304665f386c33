"""Style and script are sent without what only people need, and nothing else is lost."""

import re
from importlib.resources import files

import pytest

from kafkascope.explorer.assets import asset, smaller_script


def source(name: str) -> str:
    return files("kafkascope.explorer").joinpath("static", name).read_text(encoding="utf-8")


# By another expression than the one of the code: with quotes alone, since ours are all straight.
def literals(script: str) -> list[str]:
    lines = re.sub(r"^\s*//.*$|/\*.*?\*/", "", script, flags=re.MULTILINE)
    return re.findall(r'"[^"\n]*"|`[^`]*`', lines)


def words(text: str) -> list[str]:
    return re.findall(r"[\w$]+|[^\w\s]", text)


@pytest.mark.parametrize("name", ["page.js", "find.js"])
def test_a_smaller_script_has_the_same_tokens(name: str) -> None:
    written = source(name)
    small = smaller_script(written.encode()).decode()
    without_comments = re.sub(r"^\s*//.*$|/\*.*?\*/", "", written, flags=re.MULTILINE)
    assert words(small) == words(without_comments)
    assert literals(small) == literals(written)
    assert len(small) < 0.8 * len(written)


def test_literals_of_a_script_stay_as_they_are() -> None:
    script = rb"""const a = "x  // y"; // gone
    const b = text.replace(/[ ,;]  +/g, " ; ");  /* gone */
    const c = a && /^ *"/.test(b) ? `  ${ a } // ` : "\" ;  ";
"""
    small = smaller_script(script)
    assert small == (
        rb"""const a="x  // y";const b=text.replace(/[ ,;]  +/g," ; ");"""
        rb"""const c=a&&/^ *"/.test(b)?`  ${ a } // `:"\" ;  ";"""
    )


@pytest.mark.parametrize("name", ["page.css", "manual.css"])
def test_a_smaller_style_has_the_same_rules(name: str) -> None:
    def rules(style: str) -> list[str]:
        style = re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL)
        style = re.sub(r"#(\w)\1(\w)\2(\w)\3\b", r"#\1\2\3", style)
        return [re.sub(r"\s+", "", rule) for rule in re.split(r"[{};]", style) if rule.strip()]

    def blanks(style: str) -> list[str]:
        """Blanks that mean something: between selectors, and around + and - of a calculation."""
        return re.findall(r"[\w)\]*] [.#:\[\w*]|\) [+*/-] ", re.sub(r":\s+|/\*.*?\*/", ":", style, flags=re.DOTALL))

    small = asset(name).decode()
    assert rules(small) == rules(source(name))
    assert blanks(small) == blanks(re.sub(r"\s+", " ", source(name)))
