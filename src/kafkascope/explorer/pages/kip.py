"""The page of a KIP: the APIs, versions and fields that it changed on the wire."""

from kafkascope.errors import NotFoundError
from kafkascope.explorer.facts.kips import kip_touches
from kafkascope.explorer.page import Kind, Page
from kafkascope.schema.catalog import message
from kafkascope.schema.export import span_text
from kafkascope.schema.kip_titles import kip_address, kip_title
from kafkascope.schema.names import clip, parse_number


def make(number: str) -> Page:
    parsed = parse_number(number)
    touched = kip_touches().get(-1 if parsed is None else parsed)
    if touched is None or str(parsed) != number:
        raise NotFoundError(f"no message in the catalog comes from KIP-{clip(number)}")
    listed = []
    for row in touched:
        definition = message(f"{row['name']}Request" if row["api"] else row["name"])
        newest = definition.all_versions()[-1]
        version = row["version"]
        spans = span_text(definition.releases_of(version)) if version in definition.all_versions() else None
        listed.append(row | {"releases": spans, "shown": newest if version is None else version})
    called = kip_title(int(number))
    about = f"What KIP-{number} changed on the wire: APIs, versions and fields."
    facts = {"number": parsed, "called": called, "wiki": kip_address(int(number)), "touched": listed}
    return Page(f"KIP-{number}: {called}" if called else f"KIP-{number}", facts, about)


KIND = Kind("kip", "kip/{number}.html", "kip.html", make, lambda: ({"number": str(number)} for number in kip_touches()))
