"""The catalog's upkeep: the published jars make exactly the files that are checked in, a source folder adds to them."""

import json
from pathlib import Path
from subprocess import CalledProcessError

import pytest

from kafkascope.schema.catalog import parse_message
from tools.catalog import __main__ as command
from tools.catalog.build import DATA, build, write
from tools.catalog.definitions import parse
from tools.catalog.handler_errors import handler_lines
from tools.catalog.jars import Release, read_releases, source_texts


def checked_in(name: str) -> str:
    return (DATA / name).read_text()


def as_text(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


@pytest.mark.heavy
def test_the_published_jars_make_exactly_the_files_that_are_checked_in() -> None:
    built = build(read_releases())
    assert {path.stem for path in (DATA / "messages").glob("*.txt")} == built.messages.keys()
    assert [n for n, lines in built.messages.items() if as_text(lines) != checked_in(f"messages/{n}.txt")] == []
    for stem in ("index", "releases", "errors"):
        assert as_text(getattr(built, stem)) == checked_in(f"{stem}.txt"), stem


@pytest.mark.heavy
def test_errors_of_the_compiled_broker_are_found_again() -> None:
    release, jars = command.server_jars(read_releases())
    assert as_text(handler_lines(release.name, jars)) == checked_in("handler_errors.txt")


NEWEST = [release for release in read_releases() if release.name in ("4.3", "4.4")]
FETCH = {
    "apiKey": 78,
    "type": "request",
    "listeners": ["broker"],
    "name": "ShareFetchRequest",
    "validVersions": "1-3",
    "flexibleVersions": "0+",
    "fields": [
        {"name": "GroupId", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"},
        {"name": "Hurry", "type": "bool", "versions": "3+"},
    ],
}
RECORD = {
    "apiKey": 900,
    "type": "metadata",
    "name": "WidgetRecord",
    "validVersions": "0",
    "flexibleVersions": "0+",
    "fields": [{"name": "WidgetId", "type": "uuid", "versions": "0+"}],
}


@pytest.fixture
def trunk(tmp_path: Path) -> Path:
    """A small source tree: a message changed, one added, one that is only a test's, and JSON that is no definition."""
    for place, content in {
        "clients/src/main/resources/common/message/ShareFetchRequest.json": FETCH,
        "metadata/src/main/resources/common/metadata/WidgetRecord.json": RECORD,
        "clients/src/test/resources/common/message/SimpleExampleMessage.json": RECORD | {"name": "OnlyATest"},
        "clients/config/checkstyle.json": {"name": "no definition"},
    }.items():
        file = tmp_path / "kafka" / place
        file.parent.mkdir(parents=True)
        file.write_text(f"// a licence\n\n{json.dumps(content, indent=2)}\n")
    return tmp_path / "kafka"


def test_a_source_tree_gives_its_definitions_by_their_part_of_kafka(trunk: Path) -> None:
    artifacts = {parse(text).name: artifact for artifact, text in source_texts(trunk)}
    assert artifacts == {"ShareFetchRequest": "kafka-clients", "WidgetRecord": "metadata"}


def test_a_folder_above_that_is_called_clients_makes_nothing_a_client_message(trunk: Path) -> None:
    below = trunk.parent / "clients"
    trunk.rename(below.parent / "moved")
    below.mkdir()
    (below.parent / "moved").rename(below / "kafka")
    artifacts = {parse(text).name: artifact for artifact, text in source_texts(below / "kafka")}
    assert artifacts["WidgetRecord"] == "metadata"


@pytest.mark.heavy
def test_a_source_tree_is_one_release_more(trunk: Path) -> None:
    catalog = build(NEWEST, ("4.5", trunk), only={"ShareFetch", "WidgetRecord"})
    assert catalog.releases == ["4.3 4.3.1 all", "4.4 4.4.0 clients", "4.5 source all"]
    request, record = catalog.messages["ShareFetchRequest"], catalog.messages["WidgetRecord"]
    assert [line for line in request if line.startswith("valid")] == ["valid 4.3..4.4 1-2", "valid 4.5+ 1-3"]
    assert [line for line in record if line.startswith("valid")] == ["valid 4.5+ 0"]
    now, *before = parse_message(as_text(request)).blocks
    assert [field.name for field in now.fields if 3 in field.versions] == ["GroupId", "Hurry"]
    # 4.5 lays versions 1 and 2 out otherwise, so those of 4.3 and 4.4 stay beside them
    assert {str(block.releases) for block in before} == {"4.3-4.4"}
    assert all("MemberId" in [field.name for field in block.fields] for block in before)


@pytest.mark.heavy
def test_only_keeps_the_messages_that_are_named() -> None:
    catalog = build(NEWEST, only={"ShareFetch", "TopicRecord"})
    assert sorted(catalog.messages) == ["ShareFetchRequest", "ShareFetchResponse", "TopicRecord"]
    assert [line.split()[0] for line in catalog.index] == sorted(catalog.messages)


@pytest.mark.heavy
def test_what_is_written_is_what_was_built_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "messages").mkdir()
    (tmp_path / "messages" / "GoneRequest.txt").write_text("GoneRequest\n")
    built = build(NEWEST, only={"TopicRecord"})
    write(built, tmp_path)
    assert [path.name for path in (tmp_path / "messages").iterdir()] == ["TopicRecord.txt"]
    assert (tmp_path / "messages" / "TopicRecord.txt").read_text() == as_text(built.messages["TopicRecord"])
    assert (tmp_path / "index.txt").read_text() == as_text(built.index)


def test_a_source_folder_cannot_take_the_name_of_a_published_release(
    trunk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["catalog", "source", str(trunk), "4.4"])
    with pytest.raises(SystemExit, match=r"later than 4\.4"):
        command.main()


def test_a_folder_without_definitions_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = checked_in("releases.txt")
    monkeypatch.setattr("sys.argv", ["catalog", "source", str(tmp_path / "nowhere"), "9.9"])
    with pytest.raises(SystemExit, match="no definition files"):
        command.main()
    assert checked_in("releases.txt") == before


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A releases.txt of its own, and Maven replaced by a list of what is published."""
    file = tmp_path / "releases.txt"
    file.write_text("# release, version, jars\n3.8 3.8.1 kafka-clients kafka_2.13\n4.4 4.4.0 kafka-clients\n")
    monkeypatch.setattr(command, "HERE", tmp_path)
    return file


def publish(monkeypatch: pytest.MonkeyPatch, *artifacts: str) -> None:
    def fetch(items: list[tuple[str, str, str]]) -> None:
        if items[0][1] not in artifacts:
            raise CalledProcessError(1, "mvn")

    monkeypatch.setattr(command, "fetch", fetch)


def test_a_new_release_is_listed_with_what_is_published(listed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(monkeypatch, "kafka-clients", "kafka-raft")
    command.add_release("4.5.0")
    assert listed.read_text().splitlines()[-1] == "4.5 4.5.0 kafka-clients kafka-raft"


def test_a_later_patch_takes_the_line_of_its_release(listed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(monkeypatch, "kafka-clients", "kafka_2.13")
    command.add_release("3.8.2")
    assert listed.read_text().splitlines()[1:] == ["3.8 3.8.2 kafka-clients kafka_2.13", "4.4 4.4.0 kafka-clients"]


def test_a_release_that_is_not_published_changes_nothing(listed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = listed.read_text()
    publish(monkeypatch)
    with pytest.raises(SystemExit, match="is unavailable"):
        command.add_release("9.9.0")
    assert listed.read_text() == before


@pytest.mark.heavy
def test_the_server_jars_are_those_of_the_newest_release_that_has_them() -> None:
    releases = read_releases()
    release, jars = command.server_jars([*releases, Release("99.0", "99.0.0", ("kafka-clients",))])
    assert release == [known for known in releases if known.artifacts != ("kafka-clients",)][-1]
    artifacts = ("kafka_2.13", "kafka-server", "kafka-group-coordinator")
    assert {f"{artifact}-{release.version}.jar" for artifact in artifacts} <= {jar.name for jar in jars}
