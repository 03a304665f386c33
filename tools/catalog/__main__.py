"""The maintainer's command: `python -m tools.catalog build | add VERSION | source FOLDER RELEASE`; writes the catalog's text files."""

import argparse
import subprocess
from pathlib import Path

from tools.catalog.build import build, write
from tools.catalog.handler_errors import main as write_handler_errors
from tools.catalog.jars import HERE, fetch, read_releases

# Every artifact that has carried definition files; a new release is asked for each.
ARTIFACTS = (
    "kafka-clients kafka-raft kafka-metadata kafka-storage"
    " kafka-group-coordinator kafka-transaction-coordinator kafka-share-coordinator"
).split()


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
    arguments = parser.parse_args()
    if arguments.command == "handlers":
        write_handler_errors()
        return
    if arguments.command == "add":
        add_release(arguments.version)
    extra = (arguments.release, arguments.folder) if arguments.command == "source" else None
    write(build(read_releases(), extra))
    print("written; `git diff --stat src/kafkascope/schema/data` shows what the release changed")


def add_release(version: str) -> None:
    """One line in releases.txt, with the artifacts that are published."""
    name = ".".join(version.split(".")[:2])
    listed = HERE / "releases.txt"
    kept = [line for line in listed.read_text().splitlines() if line.split()[0] != name]
    found = []
    for artifact in ARTIFACTS:
        try:
            fetch([("org.apache.kafka", artifact, version)])
            found.append(artifact)
        except subprocess.CalledProcessError:
            print(f"{artifact} {version} is not published")
    if "kafka-clients" not in found:
        raise SystemExit(f"kafka-clients {version} is not to be had; nothing was changed")
    listed.write_text("\n".join([*kept, " ".join([name, version, *found])]) + "\n")


if __name__ == "__main__":
    main()
