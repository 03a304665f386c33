"""Merges the definitions that all releases have of one message into one tree that holds every version.

For each version the newest release that has it decides names and attributes. Releases whose layout of that version
reads the same bytes differ only in aliases (`was`) and in tagged fields that came later (`since`); a release whose
layout does not gets a block of its own. `check` proves the result against every definition it came from.
"""

from dataclasses import dataclass, field

from tools.catalog.definitions import Definition, FieldDefinition
from tools.catalog.versions import parse_range, within

Release = tuple[int, ...]


def release_key(release: str) -> Release:
    return tuple(int(part) for part in release.split("."))


@dataclass(slots=True)
class MergedField:
    name: str
    type: str
    versions: frozenset[int]
    nullable: frozenset[int]
    tag: int | None
    tagged: frozenset[int]
    default: str | None
    entity: str | None
    map_key: bool
    ignorable: bool
    classic: bool
    fields: list["MergedField"]
    since: str | None = None
    was: dict[str, str] = field(default_factory=dict)  # last release of an earlier name -> that name

    def shape(self, version: int, release: str | None) -> tuple[object, ...]:
        """Everything that the wire and the JSON see of this field at one version in one release."""
        return (
            self.name_in(release),
            "struct" if self.fields else self.type,
            version in self.nullable,
            self.tag if version in self.tagged else None,
            self.default if version in self.tagged else None,
            shape(self.fields, version, release),
        )

    def name_in(self, release: str | None) -> str:
        if release is None:
            return self.name
        older = [(release_key(last), name) for last, name in self.was.items()]
        return min((item for item in older if item[0] >= release_key(release)), default=((), self.name))[1]


def shape(fields: list[MergedField], version: int, release: str | None) -> tuple[object, ...]:
    present = [f for f in fields if version in f.versions]
    if release is not None:
        present = [f for f in present if f.since is None or release_key(f.since) <= release_key(release)]
    plain = [f.shape(version, release) for f in present if version not in f.tagged]
    tagged = sorted((f.tag or 0, f.shape(version, release)) for f in present if version in f.tagged)
    return (*plain, *tagged)


@dataclass(slots=True)
class Block:
    """One layout: the versions it holds and, where other releases read those versions otherwise, its releases."""

    versions: frozenset[int]
    flexible: frozenset[int]
    fields: list[MergedField]
    first: str | None = None
    last: str | None = None


@dataclass(slots=True)
class Merged:
    name: str
    definitions: dict[str, Definition]  # by release, oldest first
    valid: dict[str, frozenset[int]]
    blocks: list[Block]


def merge(definitions: dict[str, Definition]) -> Merged:
    valid = {release: valid_versions(definition) for release, definition in definitions.items()}
    newest = list(definitions)[-1]
    merged = Merged(definitions[newest].name, definitions, valid, [])
    main: dict[str, set[int]] = {}  # authority release -> versions
    older: dict[tuple[str, str], set[int]] = {}  # (first, last) release -> versions
    members: list[tuple[int, list[str]]] = []
    for version in sorted(frozenset().union(*valid.values())):
        having = [release for release in definitions if version in valid[release]]
        classes = _classes(definitions, version, having)
        main.setdefault(classes[-1][-1], set()).add(version)
        members.append((version, classes[-1]))
        for group in classes[:-1]:
            older.setdefault((group[0], group[-1]), set()).add(version)
    merged.blocks = _main_blocks(definitions, main)
    for version, group in members:
        block = next(b for b in merged.blocks if version in b.versions)
        for release in reversed(group[:-1]):
            _note(block.fields, tree(definitions[release], frozenset({version})), version, release, definitions, valid)
    for (first, last), versions in sorted(older.items(), key=lambda item: release_key(item[0][0]), reverse=True):
        block = _block(definitions[last], frozenset(versions))
        block.first, block.last = first, last
        merged.blocks.append(block)
        for version in versions:
            for release in reversed(
                [r for r in definitions if release_key(first) <= release_key(r) < release_key(last)]
            ):
                _note(
                    block.fields, tree(definitions[release], frozenset({version})), version, release, definitions, valid
                )
    check(merged)
    return merged


def check(merged: Merged) -> None:
    """Every (release, version) projected out of the merged tree is that release's own definition."""
    for release, definition in merged.definitions.items():
        for version in merged.valid[release]:
            block = choose(merged.blocks, version, release)
            ours = shape(block.fields, version, release)
            theirs = shape(tree(definition, frozenset({version})), version, None)
            if _relaxed(ours) != _relaxed(theirs):
                raise ValueError(f"{merged.name} v{version} of {release}: merged\n{ours}\nis not\n{theirs}")
            if (version in block.flexible) != (version in within(definition.flexible, [version])):
                raise ValueError(f"{merged.name} v{version} of {release}: flexible differs")


def choose(blocks: list[Block], version: int, release: str) -> Block:
    for block in blocks:
        if version not in block.versions or not block.first or not block.last:
            continue
        if release_key(block.first) <= release_key(release) <= release_key(block.last):
            return block
    return next(b for b in blocks if version in b.versions and b.first is None)


def tree(definition: Definition, versions: frozenset[int]) -> list[MergedField]:
    """A definition cut down to some versions."""
    return _cut(definition.fields, versions)


def _cut(fields: list[FieldDefinition], versions: frozenset[int]) -> list[MergedField]:
    cut = []
    for f in fields:
        present = within(f.versions, versions)
        if not present:
            continue
        cut.append(
            MergedField(
                name=f.name,
                type=f.type,
                versions=present,
                nullable=within(f.nullable, present),
                tag=f.tag,
                tagged=within(f.tagged, present),
                default=f.default,
                entity=f.entity,
                map_key=f.map_key,
                ignorable=f.ignorable,
                classic=f.classic,
                fields=_cut(f.fields, present),
            )
        )
    return cut


def valid_versions(definition: Definition) -> frozenset[int]:
    bounds = parse_range(definition.valid)
    return frozenset() if bounds is None else frozenset(range(bounds[0], bounds[1] + 1))


def _block(definition: Definition, versions: frozenset[int]) -> Block:
    return Block(versions, within(definition.flexible, versions), tree(definition, versions))


def _classes(definitions: dict[str, Definition], version: int, having: list[str]) -> list[list[str]]:
    """Runs of releases that read the same bytes, oldest run first, newest release last in each."""
    classes: list[list[str]] = []
    for release in reversed(having):
        single = frozenset({version})
        if classes:
            authority = definitions[classes[-1][0]]
            same_flexible = within(authority.flexible, single) == within(definitions[release].flexible, single)
            if same_flexible and _reads(tree(authority, single), tree(definitions[release], single), version):
                classes[-1].append(release)
                continue
        classes.append([release])
    return [list(reversed(group)) for group in reversed(classes)]


def _reads(newer: list[MergedField], older: list[MergedField], version: int) -> bool:
    """Whether the newer layout reads what the older one writes: same fields, at most more tags."""
    pairs = _pairs(newer, older, version)
    if pairs is None:
        return False
    for new, old in pairs:
        if {new.type, old.type} != {"records", "bytes"} and not _same_type(new, old):
            return False
        if old.nullable - new.nullable:
            return False
        if version in new.tagged and new.default != old.default:
            return False
        if new.fields and not _reads(new.fields, old.fields, version):
            return False
    return True


def _same_type(new: MergedField, old: MergedField) -> bool:
    if new.fields or old.fields:
        return bool(new.fields) == bool(old.fields) and new.type.startswith("[]") == old.type.startswith("[]")
    return new.type == old.type


def _pairs(
    newer: list[MergedField], older: list[MergedField], version: int
) -> list[tuple[MergedField, MergedField]] | None:
    """Fields that lie at the same place: untagged by order, tagged by tag. None where they cannot be paired."""
    new_plain = [f for f in newer if version in f.versions and version not in f.tagged]
    old_plain = [f for f in older if version in f.versions and version not in f.tagged]
    if len(new_plain) != len(old_plain):
        return None
    new_tagged = {f.tag: f for f in newer if version in f.versions and version in f.tagged}
    old_tagged = {f.tag: f for f in older if version in f.versions and version in f.tagged}
    if not old_tagged.keys() <= new_tagged.keys():
        return None
    return list(zip(new_plain, old_plain, strict=True)) + [(new_tagged[tag], f) for tag, f in old_tagged.items()]


def _main_blocks(definitions: dict[str, Definition], main: dict[str, set[int]]) -> list[Block]:
    """One tree for all versions where the authorities' trees fold into each other, more where they do not."""
    blocks: list[Block] = []
    for release in sorted(main, key=release_key, reverse=True):
        piece = _block(definitions[release], frozenset(main[release]))
        for block in blocks:
            folded = Block(
                block.versions | piece.versions, block.flexible | piece.flexible, _fold(block.fields, piece.fields)
            )
            if all(
                shape(folded.fields, v, None) == shape(part.fields, v, None)
                for part in (block, piece)
                for v in part.versions
            ):
                block.versions, block.flexible, block.fields = folded.versions, folded.flexible, folded.fields
                break
        else:
            blocks.append(piece)
    return blocks


def _fold(newer: list[MergedField], older: list[MergedField]) -> list[MergedField]:
    result = list(newer)
    place = 0
    for old in older:
        for index, new in enumerate(result):
            alike = new.name == old.name and (new.type == old.type or (new.fields and old.fields))
            if alike and new.tag == old.tag and new.default == old.default and new.classic == old.classic:
                result[index] = MergedField(
                    name=new.name,
                    type=new.type,
                    versions=new.versions | old.versions,
                    nullable=new.nullable | old.nullable,
                    tag=new.tag,
                    tagged=new.tagged | old.tagged,
                    default=new.default,
                    entity=new.entity or old.entity,
                    map_key=new.map_key or old.map_key,
                    ignorable=new.ignorable,
                    classic=new.classic,
                    fields=_fold(new.fields, old.fields),
                )
                place = index + 1
                break
        else:
            result.insert(place, old)
            place += 1
    return result


def _note(
    ours: list[MergedField],
    theirs: list[MergedField],
    version: int,
    release: str,
    definitions: dict[str, Definition],
    valid: dict[str, frozenset[int]],
) -> None:
    """Write down what an older release calls otherwise, and which tagged fields it does not have yet."""
    pairs = _pairs(ours, theirs, version) or []
    paired = {id(our) for our, _ in pairs}
    for our in ours:
        if version in our.versions and id(our) not in paired:
            later = [r for r in definitions if release_key(r) > release_key(release) and version in valid[r]]
            if our.since is None or release_key(our.since) < release_key(later[0]):
                our.since = later[0]
    for our, their in pairs:
        if their.name != our.name_in(release):
            our.was[release] = their.name
        _note(our.fields, their.fields, version, release, definitions, valid)


def _relaxed(value: object) -> object:
    """`bytes` and `records` are one wire, and a null that a later release allowed doesn't change the layout."""
    if isinstance(value, tuple):
        if len(value) == 6 and isinstance(value[0], str):
            name, type_, _, tag, default, children = value
            return (name, "bytes" if type_ == "records" else type_, tag, default, _relaxed(children))
        return tuple(_relaxed(item) for item in value)
    return value
