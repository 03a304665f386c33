"""Parses `sasl.jaas.config` by the rules of Kafka's JaasConfig, which are those of Java's StreamTokenizer. Its contents
are secret and never part of an error."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kafkascope.errors import InputError

_FLAGS = ("required", "requisite", "sufficient", "optional")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_WORD = re.compile(r"[A-Za-z_$\u00a0-\uffff][\w.$\u00a0-\uffff-]*")
# Java has no numbers here: it also refuses an unquoted value that starts with a digit
_NUMBER = re.compile(r"[-.]?[0-9.]+")
_OCTAL = re.compile(r"[0-3][0-7]{0,2}|[4-7][0-7]?")

# A user name is shown, but a password that ran into it must not be.
_MISSING_QUOTE = re.compile(r"(?:password|clientSecret)\s*=", re.IGNORECASE)

_END, _NUMBER_KIND = ";", "number"


@dataclass(frozen=True, slots=True)
class JaasLogin:
    """`module` is the class without its package."""

    module: str
    options: dict[str, str]

    def __repr__(self) -> str:
        return f"JaasLogin({self.module})"


def parse_jaas(text: str, where: str) -> JaasLogin:
    """Kafka accepts exactly one entry."""
    tokens = list(_tokens(text))
    if len(tokens) < 2 or tokens[0][0] != "word":
        raise InputError(
            f"{where}: sasl.jaas.config must start with a login module and a flag, as in `….PlainLoginModule required`"
        )
    if tokens[1][1].lower() not in _FLAGS:
        raise InputError(f"{where}: sasl.jaas.config has no flag (required, …) after its login module")
    options: dict[str, str] = {}
    index = 2
    while index < len(tokens) and tokens[index] != (_END, _END):
        kind, name = tokens[index]
        if kind not in ("word", "quoted"):
            raise InputError(f"{where}: sasl.jaas.config: option {len(options) + 1} has no name")
        value = tokens[index + 2] if len(tokens) > index + 2 and tokens[index + 1][1] == "=" else (_END, _END)
        if value[0] not in ("word", "quoted"):
            # by its number: after a superfluous quote, the name is the rest of a password
            problem = f'option {len(options) + 1} has no value; put values in quotes, as in username="…"'
            raise InputError(f"{where}: sasl.jaas.config: {problem}")
        if name != "password" and _MISSING_QUOTE.search(value[1]):
            problem = f"the value of option {len(options) + 1} contains another option; a quote is missing"
            raise InputError(f"{where}: sasl.jaas.config: {problem}")
        options[name] = value[1]
        index += 3
    if index == len(tokens):
        raise InputError(f"{where}: sasl.jaas.config doesn't end with a semicolon")
    if index + 1 < len(tokens):
        raise InputError(f"{where}: sasl.jaas.config has more than one login module; Kafka accepts one")
    return JaasLogin(tokens[0][1].rpartition(".")[2], options)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """(kind, text): word, quoted, number, or a single character under its own name."""
    position = 0
    while position < len(text):
        character = text[position]
        if ord(character) <= 32:
            position += 1
        elif text.startswith("/*", position):
            end = text.find("*/", position + 2)
            position = len(text) if end < 0 else end + 2
        elif character == "/":
            # a single slash begins a comment too, up to the end of the line; the character after it is dropped
            ends = [place for mark in "\r\n" if (place := text.find(mark, position + 2)) >= 0]
            position = min(ends, default=len(text))
        elif character in "\"'":
            value, position = _quoted(text, position)
            yield "quoted", value
        elif match := _WORD.match(text, position):
            yield "word", match[0]
            position = match.end()
        elif match := _NUMBER.match(text, position):
            yield _NUMBER_KIND, match[0]
            position = match.end()
        else:
            yield character, character
            position += 1


def _quoted(text: str, start: int) -> tuple[str, int]:
    quote, position = text[start], start + 1
    out: list[str] = []
    # a line's end ends it too
    while position < len(text) and text[position] != quote and text[position] not in "\r\n":
        if text[position] == "\\" and position + 1 < len(text):
            if octal := _OCTAL.match(text, position + 1):
                out.append(chr(int(octal[0], 8)))
                position = octal.end()
            else:
                out.append(_ESCAPES.get(text[position + 1], text[position + 1]))
                position += 2
        else:
            out.append(text[position])
            position += 1
    return "".join(out), position + 1 if text[position : position + 1] == quote else position
