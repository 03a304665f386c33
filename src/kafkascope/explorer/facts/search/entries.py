"""Lists all that the search finds: pages, APIs, errors, releases, KIPs, the manual, messages, records and fields."""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from kafkascope.explorer.facts.field_places import field_places, places_in
from kafkascope.explorer.facts.kips import kip_apis
from kafkascope.explorer.facts.manual import Heading, ManualPage, headings, manual_pages
from kafkascope.manual_files import manual_text
from kafkascope.schema.api_facts import family_of
from kafkascope.schema.catalog import apis, index, message
from kafkascope.schema.errors.error_codes import error_codes
from kafkascope.schema.kip_titles import kip_title
from kafkascope.schema.record_places import RECORD_GROUPS
from kafkascope.schema.releases import releases

# The order of kinds among equally good results.
ENTRY_KINDS = ("api", "page", "error", "release", "kip", "message", "record", "manual", "name", "field")
_PAGES = (
    ("Decode", "bytes to fields", "decode.html", ("decoder", "hex", "base64", "hexdump", "pcap")),
    ("Errors", "every error code", "errors.html", ("error codes",)),
    ("Releases", "what each release changed on the wire", "releases.html", ()),
    ("Upgrades", "what breaks between two releases", "upgrades.html", ("compatibility",)),
    ("Records", "what Kafka writes into its own topics and files", "records.html", ()),
    ("Record batches", "every field, flag and byte", "batches.html", ("batches", "magic", "message set")),
    ("Varint", "zig-zag numbers of variable length", "batches.html#record", ("varints", "varlong", "zigzag")),
    ("Compression", "of record batches", "batches.html#compression", ("gzip", "snappy", "lz4", "zstd")),
    ("Batch attributes", "flags of a record batch", "batches.html#attributes", ("attributes",)),
    ("Manual", "how to install and use kafkascope", "docs/index.html", ("docs", "documentation", "help")),
    ("Control batches", "transaction markers and the like", "batches.html#control", ("markers",)),
)


class SearchEntry(NamedTuple):
    """`also` are other words that find it: numbers, earlier names. `versions` are the versions with a page."""

    kind: str
    text: str
    about: str
    address: str
    also: tuple[str, ...] = ()
    versions: tuple[int, ...] = ()


@cache
def entries() -> tuple[SearchEntry, ...]:
    return (*_apis(), *_pages(), *_errors(), *_releases(), *_kips(), *_manual(), *_names(), *_messages())


def _apis() -> Iterator[SearchEntry]:
    for key, api in apis().items():
        was = tuple(alias.removesuffix("Request") for alias in index()[f"{api}Request"].aliases)
        yield SearchEntry("api", api, f"API {key} · {family_of(api)}", f"api/{api}.html", (str(key), *was))


def _pages() -> Iterator[SearchEntry]:
    for text, about, address, also in _PAGES:
        yield SearchEntry("page", text, about, address, also)
    for group, title in RECORD_GROUPS.items():
        about, separator, topic = title.partition(": the topic ")
        if separator:
            yield SearchEntry("page", topic, f"records of the {about[0].lower()}{about[1:]}", records_of(group))


def records_of(group: str) -> str:
    return f"records.html#{group.replace(' ', '-')}"


def _errors() -> Iterator[SearchEntry]:
    for error in error_codes().values():
        also = (str(error.code), *error.aliases, *((error.exception,) if error.exception else ()))
        yield SearchEntry("error", error.name, f"error {error.code}", f"error/{error.name}.html", also)


def _releases() -> Iterator[SearchEntry]:
    for release in reversed(releases()):
        yield SearchEntry(
            "release", f"Kafka {release.name}", "release", f"release/{release.name}.html", (release.name,)
        )


def _kips() -> Iterator[SearchEntry]:
    for number, names in kip_apis().items():
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        about = kip_title(number) or ", ".join(names[:3]) + more
        yield SearchEntry("kip", f"KIP-{number}", about, f"kip/{number}.html", (str(number),))


def _manual() -> Iterator[SearchEntry]:
    for page, parts in manual_headings().items():
        yield SearchEntry("manual", page.title, "manual", f"docs/{page.name}.html", (page.name,))
        for part in parts:
            about = f"manual: {page.title}"
            yield SearchEntry("manual", part.title, about, f"docs/{page.name}.html#{part.place}")


@cache
def manual_headings() -> dict[ManualPage, tuple[Heading, ...]]:
    """The headings of each page of the manual below its title."""
    return {page: tuple(headings(manual_text(page.file)))[1:] for page in manual_pages().values()}


def _names() -> Iterator[SearchEntry]:
    """Names of fields in several places. A field in one place is found at that place."""
    for name, places in field_places().items():
        if len(places) > 1:
            yield SearchEntry("name", name, f"field in {len(places)} places", f"field/{name}.html")


def _messages() -> Iterator[SearchEntry]:
    for name, entry in index().items():
        definition = message(name)
        kind = page_kind(definition.kind)
        versions = tuple(definition.all_versions())
        about = f"{definition.kind} v{versions[-1]}"
        yield SearchEntry(kind, name, about, f"{kind}/{name}/{versions[-1]}.html", entry.aliases, versions)
        for place in places_in(definition):
            path = ".".join(place.path)
            yield SearchEntry("field", place.path[-1], f"{name} {path}", f"{kind}/{name}/{place.version}.html#f-{path}")


def page_kind(kind: str) -> str:
    return "message" if kind in ("request", "response", "header") else "record"
