"""Names the keys of a settings file in notes and errors without ever showing a value, even if a missing `=`, quote or
line end makes a value part of a key or of another value."""

import re
from collections.abc import Iterable, Mapping

from kafkascope.errors import UsageError
from kafkascope.formatting import close_names, did_you_mean

# No key of Kafka or librdkafka about TLS or SASL has a digit or a capital.
_KEY = re.compile(r"[a-z_]+(?:[.-][a-z_]+)*")
# The text after one of these may be the secret itself.
_SECRET = re.compile(r"password|passphrase|secret|jaas\.config|token(?!\.endpoint)|\.pem|\.key$")
# More milliseconds than this are a mistake.
_MAX_DIGITS = 12
_MISSING_LINE_END = re.compile(r"(?:password|secret|jaas\.config)\s*=", re.IGNORECASE)
# Values that are shown in prompts and login errors, sent to brokers, and logged.
_SHOWN = (
    *("client.id", "sasl.username", "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.credentials.client.id"),
    "sasl.oauthbearer.scope",
)
# RFC 4422: names of SASL mechanisms have up to 20 of these.
_MECHANISM = re.compile(r"[A-Z0-9_-]{1,20}")


def _shown_key(name: str) -> str:
    """`sasl.password…` for `sasl.password hunter2`."""
    match = _KEY.match(name)
    head = match[0] if match else ""
    secret = _SECRET.search(head)
    if secret is not None:
        head = head[: secret.end()]
    elif head != name:
        # the last word may have run into the text after it
        head = head.rpartition(".")[0]
    return name if head == name else f"{head}…"


def unread_notes(keys: Mapping[str, str], lost: Iterable[str], read: Iterable[str], where: str) -> list[str]:
    """Lines for the user: `lost` are keys that would matter; others may be typos of those that are `read`."""
    lost, read = set(lost), tuple(read)
    shown = sorted({_shown_key(name) for name in lost})
    notes = [f"{where}: not supported and ignored: {', '.join(shown)}"] if shown else []
    for name in keys:
        near = close_names(name, read, cutoff=0.9)
        if near and name not in read and name not in lost:
            notes.append(f"{where}: {_shown_key(name)} is unknown{did_you_mean(near)}")
    return notes


def refuse_missing_line_end(keys: Mapping[str, str], where: str) -> None:
    """A missing line end joins two lines: a value that is shown could then contain a password."""
    for name in _SHOWN:
        if _MISSING_LINE_END.search(keys.get(name, "")):
            raise UsageError(f"{where}: the value of {name} contains another key; is a line end missing?")


def seconds_of(keys: Mapping[str, str], where: str, *names: str) -> float | None:
    """The first of these keys with a value, which is in milliseconds."""
    for name in names:
        if text := keys.get(name, "").strip():
            if not text.isdecimal() or len(text) > _MAX_DIGITS or int(text) == 0:
                raise UsageError(f"{where}: {name} must be a number of milliseconds above 0")
            return int(text) / 1000
    return None


def mechanism_of(text: str, key: str, where: str) -> str:
    mechanism = text.strip().upper()
    if not _MECHANISM.fullmatch(mechanism):
        raise UsageError(f"{where}: {key} must be the name of a SASL mechanism, such as PLAIN")
    return mechanism
