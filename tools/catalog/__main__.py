"""The maintainer's command, `python -m tools.catalog build | add VERSION | source FOLDER RELEASE | handlers |
exceptions | facts PROBE…`: writes the catalog's text files from jars, a source folder or responses of live brokers."""

import argparse
import subprocess
from pathlib import Path

from kafkascope.schema.errors.error_codes import error_codes
from tools.catalog.broker_errors import add_probes
from tools.catalog.build import DATA, build, write
from tools.catalog.exceptions import exception_lines
from tools.catalog.handler_errors import handler_lines
from tools.catalog.jars import HERE, Release, fetch, read_releases, source_texts
from tools.catalog.merge import release_key

# Every artifact that has carried definition files; a new release is asked for each.
_ARTIFACTS = (
    "kafka-clients kafka-raft kafka-metadata kafka-storage"
    " kafka-group-coordinator kafka-transaction-coordinator kafka-share-coordinator"
).split()
# What the broker's handlers are compiled into, besides the jars with definitions.
_SERVER_ARTIFACTS = ("kafka_2.13", "kafka-server", "kafka-server-common", "kafka-coordinator-common")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.catalog", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="all releases of releases.txt, from their jars")
    add = commands.add_parser("add", help="add a published release to releases.txt, then build")
    add.add_argument("version", help="as Maven knows it, for example 4.5.0")
    source = commands.add_parser("source", help="add a source folder (trunk, a fork) as a release, then build")
    source.add_argument("folder", type=Path)
    source.add_argument("release", help="the name it gets, for example 4.5")
    commands.add_parser("handlers", help="which errors the broker's compiled code names for each API")
    commands.add_parser("exceptions", help="the superclasses of the exceptions of error codes")
    facts = commands.add_parser("facts", help="add the errors that live brokers returned to the catalog")
    facts.add_argument("probe", nargs="+", type=Path, help="what `kafkascope probe HOST --json` printed")
    facts.add_argument("--release", help="of all brokers probed; needed where their versions fit several releases")
    arguments = parser.parse_args()
    if arguments.command == "facts":
        print(add_probes(DATA / "broker_errors.txt", arguments.probe, arguments.release))
        return
    if arguments.command == "handlers":
        release, jars = server_jars(read_releases())
        (DATA / "handler_errors.txt").write_text("\n".join(handler_lines(release.name, jars)) + "\n")
        print(f"written from {len(jars)} jars of {release.version}")
        return
    if arguments.command == "exceptions":
        newest = read_releases()[-1]
        fetch([("org.apache.kafka", "kafka-clients", newest.version)])
        names = [error.exception for error in error_codes().values() if error.exception]
        written = exception_lines(newest.name, newest.jar("kafka-clients"), names)
        (DATA / "exceptions.txt").write_text("\n".join(written) + "\n")
        print(f"written from kafka-clients {newest.version}")
        return
    if arguments.command == "add":
        add_release(arguments.version)
    releases = read_releases()
    extra = (arguments.release, arguments.folder.resolve()) if arguments.command == "source" else None
    if extra and release_key(extra[0]) <= release_key(releases[-1].name):
        raise SystemExit(f"a source folder is newer than what is published: call it later than {releases[-1].name}")
    if extra and not any(source_texts(extra[1])):
        raise SystemExit(f"{extra[1]} holds no definition files; give the root of a source tree")
    write(build(releases, extra))
    print("written; `git diff --stat src/kafkascope/schema/data` shows what the release changed")


def add_release(version: str) -> None:
    """One line in releases.txt, with the artifacts that are published; a later patch takes its release's line."""
    name = ".".join(version.split(".")[:2])
    file = HERE / "releases.txt"
    lines = {line.split()[0]: line for line in file.read_text().splitlines()}
    published = []
    for artifact in dict.fromkeys((*_ARTIFACTS, *lines.get(name, "").split()[2:])):
        try:
            fetch([("org.apache.kafka", artifact, version)])
            published.append(artifact)
        except subprocess.CalledProcessError:
            print(f"{artifact} {version} is not published")
    if "kafka-clients" not in published:
        raise SystemExit(f"kafka-clients {version} is unavailable; nothing was changed")
    lines[name] = " ".join([name, version, *published])
    remark = lines.pop("#")
    file.write_text("\n".join([remark, *(lines[key] for key in sorted(lines, key=release_key))]) + "\n")


def server_jars(releases: list[Release]) -> tuple[Release, list[Path]]:
    """Those of the newest release that has more than its client published."""
    newest = [release for release in releases if len(release.artifacts) > 1][-1]
    artifacts = dict.fromkeys((*newest.artifacts, *_SERVER_ARTIFACTS))
    fetch([("org.apache.kafka", artifact, newest.version) for artifact in artifacts])
    return newest, [newest.jar(artifact) for artifact in artifacts]


if __name__ == "__main__":
    main()
