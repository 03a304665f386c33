"""Finds a lake and checks its format. A lake is a folder with a small file that names the format, and one folder per
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
# Delta's library takes %20 for a blank and \ for a slash, in whatever form they are passed; Spark takes * and others
# for patterns.
_TAKEN_OTHERWISE = re.compile(r"%[0-9A-Fa-f]{2}|[\\*?\[\]{}\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Lake:
    """`kept` caches tables that a reader holds open, each with the log that it was opened with (`find_table`); None
    opens them every time."""

    place: Place
    id: str
    format: int = LAKE_FORMAT
    kept: dict[tuple[str, str], tuple[object, Any]] | None = field(default=None, compare=False, repr=False)

    @property
    def uri(self) -> str:
        return self.place.uri

    @property
    def storage_options(self) -> dict[str, str]:
        """The options that `deltalake` needs; it reads the rest from the environment, as `pyarrow.fs` does."""
        if not self.uri.startswith("s3://"):
            return {}
        # A commit is a put that fails if the object exists (`If-None-Match`): of two at once, one retries.
        options = {"aws_conditional_put": "etag"}
        if os.environ.get("AWS_ENDPOINT_URL_S3", os.environ.get("AWS_ENDPOINT_URL", "")).startswith("http://"):
            options["allow_http"] = "true"
        return options

    def table(self, name: str) -> Place:
        return inside(self.place, name)

    def has(self, name: str) -> bool:
        return inside(self.place, f"{name}/{DELTA_LOG}").exists()

    def tables(self) -> list[str]:
        """Names of the existing tables."""
        names = (info.base_name for info in self.place.inside() if info.type == fs.FileType.Directory)
        return sorted(name for name in names if name[0] not in "._" and self.has(name))


def _lake_place(uri: str | os.PathLike[str]) -> Place:
    place = place_of(uri)
    match = _TAKEN_OTHERWISE.search(place.uri)
    if match:
        raise UsageError(f"{place.uri}: the name of a lake can't contain {match[0]!r}: Delta or Spark misread it")
    return place


def open_lake(uri: str | os.PathLike[str]) -> Lake:
    """Opens an existing lake of this format."""
    lake = find_lake(uri)
    if lake.format < LAKE_FORMAT:
        raise InputError(
            f"{lake.uri}: a lake of format {lake.format}, from an earlier kafkascope;"
            f" `kafkascope marts LAKE` or the next ingest brings it to format {LAKE_FORMAT}"
        )
    return lake


def make_lake(uri: str | os.PathLike[str]) -> Lake:
    """Opens a lake, and creates it if the place is empty or missing."""
    ensure_lake(uri)
    return open_lake(uri)


def find_lake(uri: str | os.PathLike[str]) -> Lake:
    """Opens an existing lake of this or an earlier format, which `lake.upgrade` brings up to date."""
    place = _lake_place(uri)
    sign = place.child(SIGN)
    if not sign.exists():
        if not place.exists():
            raise NotFoundError(
                f"{place.uri}: there is no lake here; `kafkascope ingest FILE… --lake LAKE` creates one"
            )
        raise InputError(f"{place.uri}: this isn't a kafkascope lake (it has no {SIGN})")
    value = sign.read_json()
    known, id_ = value.get("format"), value.get("id")
    if type(known) is not int or known < 1 or not isinstance(id_, str):
        raise InputError(f"{sign.uri}: this doesn't describe a kafkascope lake; is it another program's file?")
    if known > LAKE_FORMAT:
        raise InputError(
            f"{place.uri}: a lake of format {known}; this kafkascope reads up to {LAKE_FORMAT}: upgrade it"
        )
    return Lake(place, id_, known)


def ensure_lake(uri: str | os.PathLike[str]) -> Lake:
    """The lake at a place, created if that is empty or missing. Two processes at once create one lake."""
    place = _lake_place(uri)
    sign = place.child(SIGN)
    if place.info().type == fs.FileType.File:
        raise UsageError(f"{place.uri}: this is a file; a lake is a folder")
    names = [info.base_name for info in place.inside()]
    # Another process that creates it now has its sign there under a temporary name.
    if SIGN not in names and any(not name.startswith(SIGN) for name in names):
        raise UsageError(f"{place.uri}: this folder isn't empty and isn't a lake; name one that is new or empty")
    if SIGN not in names:
        sign.create(sign_of(uuid4().hex))
    return find_lake(uri)


def sign_of(id_: str) -> bytes:
    return json.dumps({"format": LAKE_FORMAT, "id": id_}).encode()
