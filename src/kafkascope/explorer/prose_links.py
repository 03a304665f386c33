"""Sets names in prose in a monospaced font, and links each to its page where it's first mentioned."""

import re
from collections.abc import Callable, Iterator
from html import escape
from typing import Any

from markupsafe import Markup

from kafkascope.explorer.address import message_page
from kafkascope.explorer.facts.field_places import field_name
from kafkascope.schema.catalog import apis, index, message
from kafkascope.schema.errors.error_codes import by_name

# Text in backticks, or a word that looks like a name. A word with one capital, like Fetch or Vote, is also English.
_NAMES = re.compile(r"`([^`]*)`|\b(KIP-[0-9]+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[A-Z][a-z0-9]+(?:[A-Z][A-Za-z0-9]*)+)\b")
Link = Callable[..., str | None]


def escape_text(text: str) -> Markup:
    """For text between tags, where quotes mean nothing. Attributes need the escaping of the templates."""
    return Markup(escape(text, quote=False))  # noqa: S704 - escaped


class ProseLinks:
    """The texts of one page. `link` is the renderer's; `fields` are the fields that the page describes."""

    def __init__(self, link: Link, here: str, fields: list[dict[str, Any]] | None = None) -> None:
        self._link = link
        self._here = here.rpartition("/")[2]
        self._anchors = dict(_anchors(fields or []))
        self._linked: set[str] = set()

    def __call__(self, text: str) -> Markup:
        parts, at = [], 0
        for match in _NAMES.finditer(text):
            parts += [escape_text(text[at : match.start()]), self._name(match[1], match[2])]
            at = match.end()
        return Markup("").join([*parts, escape_text(text[at:])])

    def code(self, word: str, *, linked: bool = True) -> Markup:
        """A word that is code already. It's a link where it can only be one name: no field, whose names are words."""
        target = self._version(word) or self._named(word) if linked and word not in self._linked else None
        if target is None:
            return Markup("<code>{}</code>").format(word)
        self._linked.add(word)
        return Markup('<a href="{}"><code>{}</code></a>').format(target, word)

    def _version(self, word: str) -> str | None:
        """Of `ShareFetchRequest:2`, as the command line takes it."""
        name, _, version = word.partition(":")
        if name not in index() or not version.isdigit() or int(version) not in message(name).all_versions():
            return None
        kind, parameters = message_page(name, int(version))
        return self._link(kind, **parameters)

    def _name(self, quoted: str | None, name: str) -> Markup:
        word = name if quoted is None else quoted
        target = None if word in self._linked else self._target(word)
        if target and target != self._here:
            self._linked.add(word)
            return Markup('<a href="{}">{}</a>').format(target, _code(word))
        known = quoted is not None or word in self._linked or target
        return _code(word) if known else escape_text(word)

    def _target(self, word: str) -> str | None:
        if word in self._anchors:
            return f"#f-{self._anchors[word]}"
        return self._named(word) or (self._link("field", name=word) if field_name(word) == word else None)

    def _named(self, word: str) -> str | None:
        """An API, message, error or KIP."""
        if word.startswith("KIP-"):
            return self._link("kip", number=word[4:]) if _is_known_kip(word[4:]) else None
        if word in apis().values():
            return self._link("api", name=word)
        if word in index():
            kind, parameters = message_page(word, message(word).all_versions()[-1])
            return self._link(kind, **parameters)
        if word in by_name():
            return self._link("error", name=by_name()[word].name)
        return None


def _code(word: str) -> Markup:
    return escape_text(word) if word.startswith("KIP-") else Markup("<code>{}</code>").format(word)


def _is_known_kip(number: str) -> bool:
    from kafkascope.explorer.facts.kips import kip_touches

    return int(number) in kip_touches()


def _anchors(fields: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Of several fields with one name, the first at the top counts."""
    for field in reversed(fields):
        yield from _anchors(field["fields"])
    for field in reversed(fields):
        yield field["name"], field["path"]
