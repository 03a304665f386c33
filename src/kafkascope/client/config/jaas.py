"""A `sasl.jaas.config` line in, the login module and its options out, by the rules of Kafka's JaasConfig, which are
those of Java's StreamTokenizer; what it holds is secret and never part of an error."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kafkascope.errors import InputError

_FLAGS = ("required", "requisite", "sufficient", "optional")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_WORD = re.compile(r"[A-Za-z_$\u00a0-\uffff][\w.$\u00a0-\uffff-]*")
# a number is no value to Java: an unquoted value that starts with a digit is refused there too
_NUMBER = re.compile(r"[-.]?[0-9.]+")
_OCTAL = re.compile(r"[0-3][0-7]{0,2}|[4-7][0-7]?")

# A user's name is shown; a password that has run into it must not be.
_RUN_ON = re.compile(r"(?:password|clientSecret)\s*=", re.IGNORECASE)

END, NUMBER = ";", "number"


@dataclass(frozen=True, slots=True)
class Login:
    """`module` is the class without its package."""

    module: str
    options: dict[str, str]

    def __repr__(self) -> str:
        return f"Login({self.module})"


def parse_jaas(text: str, where: str) -> Login:
    """Kafka takes exactly one entry."""
    tokens = list(_tokens(text))
    if len(tokens) < 2 or tokens[0][0] != "word":
        raise InputError(
            f"{where}: sasl.jaas.config starts with a login module and a flag, as `….PlainLoginModule required`"
        )
    if tokens[1][1].lower() not in _FLAGS:
        raise InputError(f"{where}: sasl.jaas.config has no flag (required, …) behind its login module")
    options: dict[str, str] = {}
    at = 2
    while at < len(tokens) and tokens[at] != (END, END):
        kind, name = tokens[at]
        if kind not in ("word", "quoted"):
            raise InputError(f"{where}: sasl.jaas.config: option {len(options) + 1} has no name")
        value = tokens[at + 2] if len(tokens) > at + 2 and tokens[at + 1][1] == "=" else (END, END)
        if value[0] not in ("word", "quoted"):
            # by its number: behind a quote too many, the name is the rest of a password
            told = f'option {len(options) + 1} has no value; put values in quotes, as username="…"'
            raise InputError(f"{where}: sasl.jaas.config: {told}")
        if name != "password" and _RUN_ON.search(value[1]):
            told = f"the value of option {len(options) + 1} holds another option; a quote is missing"
            raise InputError(f"{where}: sasl.jaas.config: {told}")
        options[name] = value[1]
        at += 3
    if at == len(tokens):
        raise InputError(f"{where}: sasl.jaas.config does not end with a semicolon")
    if at + 1 < len(tokens):
        raise InputError(f"{where}: sasl.jaas.config has more than one login module; Kafka takes one")
    return Login(tokens[0][1].rpartition(".")[2], options)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """(kind, text): word, quoted, number, or a single character under its own name."""
    at = 0
    while at < len(text):
        character = text[at]
        if ord(character) <= 32:
            at += 1
        elif text.startswith("/*", at):
            end = text.find("*/", at + 2)
            at = len(text) if end < 0 else end + 2
        elif character == "/":
            # one slash is a comment too, up to the end of the line; the character behind it is swallowed unseen
            ends = [place for mark in "\r\n" if (place := text.find(mark, at + 2)) >= 0]
            at = min(ends, default=len(text))
        elif character in "\"'":
            value, at = _quoted(text, at)
            yield "quoted", value
        elif found := _WORD.match(text, at):
            yield "word", found[0]
            at = found.end()
        elif found := _NUMBER.match(text, at):
            yield NUMBER, found[0]
            at = found.end()
        else:
            yield character, character
            at += 1


def _quoted(text: str, start: int) -> tuple[str, int]:
    quote, at = text[start], start + 1
    out: list[str] = []
    # a line's end ends it too
    while at < len(text) and text[at] != quote and text[at] not in "\r\n":
        if text[at] == "\\" and at + 1 < len(text):
            if octal := _OCTAL.match(text, at + 1):
                out.append(chr(int(octal[0], 8)))
                at = octal.end()
            else:
                out.append(_ESCAPES.get(text[at + 1], text[at + 1]))
                at += 2
        else:
            out.append(text[at])
            at += 1
    return "".join(out), at + 1 if text[at : at + 1] == quote else at
