"""Reads facts about APIs that no definition file has: permissions, tools, Admin methods, senders, KIPs, family."""

from dataclasses import dataclass
from functools import cache

from kafkascope.schema.catalog import message as read_message
from kafkascope.schema.files import lines
from kafkascope.schema.model import Message


@dataclass(frozen=True, slots=True)
class Kip:
    """`version` and `place` are None if the KIP shaped the API as a whole."""

    number: int
    version: int | None
    place: str | None


@dataclass(frozen=True, slots=True)
class ApiFacts:
    """`acls` are (operation, resource, remark); (`none`, ``, …) if no permission is needed."""

    acls: tuple[tuple[str, str, str], ...]
    tools: tuple[str, ...]
    admin: tuple[str, ...]
    sends: tuple[str, ...]
    kips: tuple[Kip, ...]


@cache
def _facts() -> dict[str, ApiFacts]:
    blocks: dict[str, list[str]] = {}
    rows: list[str] = []
    for line in lines("apis.txt"):
        if line.startswith(" "):
            rows.append(line.strip())
        else:
            rows = blocks.setdefault(line, [])
    return {api: _parse(rows) for api, rows in blocks.items()}


def _parse(rows: list[str]) -> ApiFacts:
    words: dict[str, list[str]] = {}
    for row in rows:
        word, _, rest = row.partition(" ")
        words.setdefault(word, []).append(rest)
    return ApiFacts(
        tuple(_acl(row) for row in words.get("acl", [])),
        tuple(words.get("tool", [])),
        tuple(words.get("admin", [])),
        tuple(words.get("sends", [])),
        tuple(_kip(row) for row in words.get("kip", [])),
    )


def _acl(row: str) -> tuple[str, str, str]:
    need, _, remark = row.partition(" - ")
    operation, _, resource = need.partition(" ")
    return operation, resource, remark


def _kip(row: str) -> Kip:
    number, *rest = row.split(" ")
    version = int(rest[0].removeprefix("v")) if rest else None
    return Kip(int(number), version, rest[1] if len(rest) > 1 else None)


def api_facts(api: str) -> ApiFacts:
    return _facts().get(api, ApiFacts((), (), (), (), ()))


# Every sender other than brokers and controllers is described with one of these words.
_CLIENTS = ("client", "consumer", "producer", "Streams", "Connect")


def is_for_clients(api: str) -> bool:
    """If a client sends it; the others are sent between brokers and controllers."""
    return any(word in sender for sender in api_facts(api).sends for word in _CLIENTS)


@cache
def families() -> dict[str, tuple[str, ...]]:
    by_family = {}
    for line in lines("families.txt"):
        family, _, names = line.partition(": ")
        by_family[family] = tuple(names.split())
    return by_family


def family_of(api: str) -> str:
    return next((family for family, names in families().items() if api in names), "other")


def kips_of(message: Message, version: int | None = None) -> list[int]:
    """Numbers of the KIPs for a message at a version, or for the whole message: from its definition and from our
    facts."""
    kip_numbers: set[int] = set()
    names = {message.name}
    if message.api:
        names = {f"{message.api}Request", f"{message.api}Response"}
        for kip in api_facts(message.api).kips:
            if version is None or kip.version is None or kip.version == version:
                kip_numbers.add(kip.number)
    for name in names:
        for number, kips in read_message(name).kips:
            if version is None or number == version:
                kip_numbers.update(kips)
    return sorted(kip_numbers)


def kips_of_version(message: Message, version: int) -> list[int]:
    """Those of this version only, without the ones that shaped the API as a whole."""
    kip_numbers = {number for v, numbers in message.kips for number in numbers if v == version}
    if message.api:
        kip_numbers |= {kip.number for kip in api_facts(message.api).kips if kip.version == version}
    return sorted(kip_numbers)


def field_kips(message: Message, path: tuple[str, ...]) -> list[int]:
    """The KIPs that added this field."""
    if not message.api:
        return []
    place = ".".join((message.name, *path))
    return sorted({kip.number for kip in api_facts(message.api).kips if kip.place == place})
