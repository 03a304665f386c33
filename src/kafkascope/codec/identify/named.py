"""Decodes bytes as the request or response that the user named, with or without length and header.

The reading that comes out exact shows if there are a length prefix and a header. If none is exact, the reading that the
prefix proves counts, otherwise the one that gets furthest, and its error is raised.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kafkascope.codec.frame import DecodedFrame, decode_frame, header_version, split_length
from kafkascope.codec.message import decode, decode_part
from kafkascope.codec.result import Decoded
from kafkascope.codec.walk import Walk
from kafkascope.errors import DecodeError, InputError, UsageError
from kafkascope.limits import MAX_FRAME_BYTES
from kafkascope.schema.catalog import message
from kafkascope.schema.layouts.layout import layout

# Key, version and correlation id; a correlation id and a byte of the body.
_LEAST_REQUEST, _LEAST_RESPONSE = 8, 5
# A number larger than this many times the available bytes is rather a correlation id than the length of a cut frame.
_MOST_MISSING = 8


@dataclass(frozen=True, slots=True)
class Identified:
    """Either a whole frame or a bare body."""

    frame: DecodedFrame | None
    body: Decoded | None
    release: str | None

    @property
    def exact(self) -> bool:
        return self.frame.exact if self.frame else bool(self.body and self.body.exact)

    @property
    def reasons(self) -> tuple[str, ...]:
        return self.frame.reasons if self.frame else self.body.reasons if self.body else ()


def check_size(raw: bytes) -> None:
    """If bytes begin with a length prefix, it must equal the number of the others."""
    announced, present = int.from_bytes(raw[:4], "big"), len(raw) - 4
    if announced > present:
        raise InputError(f"the frame is cut off: its length is {announced} bytes, {present} are present")
    if announced < present:
        raise InputError(
            f"more than one frame: the first one's length is {announced} bytes, {present} are present; decode reads one"
        )


def identify_named(raw: bytes, name: str, version: int, release: str | None, spans: bool) -> Identified:
    """A response's header is four bytes that could be anything: unless a prefix proves it, the bare body is tried
    first."""
    attempt = _NamedMessage(raw, name, version, release, spans)
    problem: DecodeError | None = None
    inexact: list[Identified] = []
    for read in attempt.readings():
        try:
            identified = read()
        except DecodeError as error:
            problem = problem or error
            continue
        if identified.exact:
            return identified
        inexact.append(identified)
    if inexact and not spans:
        return identify_named(raw, name, version, release, spans=True)
    attempt.check_other()
    if attempt.proven:
        if inexact and inexact[0].frame:
            return inexact[0]
    elif inexact:
        return min(inexact, key=_left)
    assert problem is not None
    raise problem if attempt.proven else attempt.furthest()[1] or problem


class _NamedMessage:
    """`proven` if a matching prefix, or a request's own key and version, show that these are header and body."""

    def __init__(self, raw: bytes, name: str, version: int, release: str | None, spans: bool) -> None:
        self.raw, self.name, self.version, self.release, self.spans = raw, name, version, release, spans
        self.definition = message(name)
        self.is_request = self.definition.kind == "request"
        length, self.start = split_length(raw)
        self.framed = length is not None
        self.proven = self._key_and_version(self.start) if self.is_request else self.framed

    def _key_and_version(self, at: int) -> bool:
        own = (self.definition.key or 0).to_bytes(2, "big") + self.version.to_bytes(2, "big")
        return self.raw[at : at + 4] == own

    def readings(self) -> tuple[Callable[[], Identified], ...]:
        if self.proven:
            return self._frame, self._body
        return (self._body,) if self.is_request else (self._body, self._frame)

    def _body(self) -> Identified:
        body = decode(self.name, self.version, self.raw, self.release, spans=self.spans)
        return Identified(None, body, self.release)

    def _frame(self) -> Identified:
        response_to = None if self.is_request else (self.definition.api or "", self.version)
        frame = decode_frame(self.raw, response_to=response_to, release=self.release, spans=self.spans)
        return Identified(frame, None, self.release)

    def check_other(self) -> None:
        """Reports why there is no exact reading: a frame that isn't whole or not the only one, a different request."""
        other = self._other_request()
        if other:
            raise InputError(
                f"not {self.name} v{self.version}: the header names {other}; without --as it is read as that"
            )
        if not self.framed and (self._begins_other_request() if self.is_request else self._begins_other_response()):
            check_size(self.raw)

    def _begins_other_request(self) -> bool:
        """If a length precedes the key of this request and an existing version."""
        version = int.from_bytes(self.raw[6:8], "big")
        same = self.raw[4:6] == (self.definition.key or 0).to_bytes(2, "big") and bool(
            self.definition.releases_of(version)
        )
        return same and not self.proven and _LEAST_REQUEST <= self._announced <= MAX_FRAME_BYTES

    def _begins_other_response(self) -> bool:
        """If the bytes after the length are a response, or if reading them as one gets furthest."""
        if not _LEAST_RESPONSE <= self._announced <= MAX_FRAME_BYTES:
            return False
        present = len(self.raw) - 4
        if self._announced > present:
            return self._announced <= _MOST_MISSING * present and self.furthest()[0] == 4
        try:
            response_to = (self.definition.api or "", self.version)
            return decode_frame(self.raw[: 4 + self._announced], response_to=response_to, release=self.release).exact
        except DecodeError:
            return False

    @property
    def _announced(self) -> int:
        return int.from_bytes(self.raw[:4], "big")

    def _other_request(self) -> str | None:
        try:
            frame = decode_frame(self.raw, release=self.release)
        except (DecodeError, UsageError):
            return None
        if frame.name is None or frame.body is None or (frame.name, frame.version) == (self.name, self.version):
            return None
        same = self.framed and frame.name == self.name
        return f"{frame.name} v{frame.version}" if frame.exact or same else None

    def furthest(self) -> tuple[int, DecodeError | None]:
        """(where it starts, what stops it) of the reading that gets furthest: the body alone, after a header, or after
        a length and a header."""
        reached = [self._reach(0, header=False)]
        if not self.is_request:
            reached.append(self._reach(0, header=True))
            if self._announced > len(self.raw) - 4 >= 0:
                reached.append(self._reach(4, header=True))
        _, start, problem = max(reached, key=lambda item: item[0])
        return start, problem

    def _reach(self, start: int, *, header: bool) -> tuple[int, int, DecodeError | None]:
        at = start
        try:
            if header:
                number = header_version(self.name, self.version)
                at = decode_part("ResponseHeader", number, self.raw, start, spans=True)[1]
        except DecodeError as error:
            return start, start, error
        walk = Walk(layout(self.name, self.version, self.release), self.raw, at)
        try:
            walk.message(whole=False)
        except DecodeError as error:
            return walk.position, start, error
        return walk.position, start, None


def _left(identified: Identified) -> int:
    """The number of bytes after those that were read."""
    body = identified.body or (identified.frame.body if identified.frame else None)
    return sum(span.end - span.start for span in body.spans if span.path == "#trailing") if body else 0
