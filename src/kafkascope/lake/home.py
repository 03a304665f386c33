"""Finds a lake and checks that it is one: a folder with a small file that names its format, and a folder for each
table."""

import json
import os
import re
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from pyarrow import fs

from kafkascope.errors import InputError, NotFoundError, UsageError
from kafkascope.lake.inside import inside
from kafkascope.lake.place import Place, place_of

# Raised when tables change in a way that an older kafkascope would misread.
LAKE_FORMAT = 2
SIGN = "_kafkascope.json"
DELTA_LOG = "_delta_log"
# Delta's library takes %20 for a blank and \ for a slash, whatever form it is given; Spark takes * and others for
# patterns.
_TAKEN_OTHERWISE = re.compile(r"%[0-9A-Fa-f]{2}|[\\*?\[\]{}\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Lake:
    """`kept` are tables that a reader holds open, each with the log that it was opened with (`find_table`); None for
    those that open them anew."""

    place: Place
    id: str
    format: int = LAKE_FORMAT
    kept: dict[tuple[str, str], tuple[object, Any]] | None = field(default=None, compare=False, repr=False)

    @property
    def uri(self) -> str:
        return self.place.uri

    @property
    def storage_options(self) -> dict[str, str]:
        """The options that `deltalake` needs; the rest it reads from the environment as `pyarrow.fs` does."""
        if not self.uri.startswith("s3://"):
            return {}
        # A commit is a put that fails where the object is there (`If-None-Match`): of two at once one looks again.
        options = {"aws_conditional_put": "etag"}
        if os.environ.get("AWS_ENDPOINT_URL_S3", os.environ.get("AWS_ENDPOINT_URL", "")).startswith("http://"):
            options["allow_http"] = "true"
        return options

    def table(self, name: str) -> Place:
        return inside(self.place, name)

    def has(self, name: str) -> bool:
        return inside(self.place, f"{name}/{DELTA_LOG}").exists()

    def tables(self) -> list[str]:
        """Names of the tables that are there."""
        names = (info.base_name for info in self.place.inside() if info.type == fs.FileType.Directory)
        return sorted(name for name in names if name[0] not in "._" and self.has(name))


def _lake_place(uri: str | os.PathLike[str]) -> Place:
    place = place_of(uri)
    match = _TAKEN_OTHERWISE.search(place.uri)
    if match:
        raise UsageError(
            f"{place.uri}: a lake cannot have {match[0]!r} in its name: Delta or Spark take it for something else"
        )
    return place


def open_lake(uri: str | os.PathLike[str]) -> Lake:
    """An existing lake, of this format."""
    lake = find_lake(uri)
    if lake.format < LAKE_FORMAT:
        raise InputError(
            f"{lake.uri}: a lake of format {lake.format}, from an earlier kafkascope;"
            f" `kafkascope marts LAKE` or the next ingest brings it to format {LAKE_FORMAT}"
        )
    return lake


def make_lake(uri: str | os.PathLike[str]) -> Lake:
    """The same, created if the place is empty or missing."""
    ensure_lake(uri)
    return open_lake(uri)


def find_lake(uri: str | os.PathLike[str]) -> Lake:
    """An existing lake, of this format or an earlier one: `lake.upgrade` brings that up to date."""
    place = _lake_place(uri)
    sign = place.child(SIGN)
    if not sign.exists():
        if not place.exists():
            raise NotFoundError(f"{place.uri}: there is no lake here; `kafkascope ingest FILE… --lake` makes one")
        raise InputError(f"{place.uri}: this is not a lake of kafkascope's (it has no {SIGN})")
    value = sign.read_json()
    known, id_ = value.get("format"), value.get("id")
    if type(known) is not int or known < 1 or not isinstance(id_, str):
        raise InputError(f"{sign.uri}: this does not say what a lake says of itself; is it another program's?")
    if known > LAKE_FORMAT:
        raise InputError(
            f"{place.uri}: a lake of format {known}; this kafkascope reads up to {LAKE_FORMAT}: upgrade it"
        )
    return Lake(place, id_, known)


def ensure_lake(uri: str | os.PathLike[str]) -> Lake:
    """The lake at a place, created if that is empty or missing. Two at once create one."""
    place = _lake_place(uri)
    sign = place.child(SIGN)
    if place.info().type == fs.FileType.File:
        raise UsageError(f"{place.uri}: a file; a lake is a folder")
    names = [info.base_name for info in place.inside()]
    # Another that makes it now has its sign there under a passing name.
    if SIGN not in names and any(not name.startswith(SIGN) for name in names):
        raise UsageError(f"{place.uri}: this folder holds something else; name one that is new or empty")
    if SIGN not in names:
        sign.create(sign_of(uuid4().hex))
    return find_lake(uri)


def sign_of(id_: str) -> bytes:
    return json.dumps({"format": LAKE_FORMAT, "id": id_}).encode()
