"""Downloads the jars that `releases.txt` lists, once, with Maven."""

import fcntl
import subprocess
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
CACHE = ROOT / ".cache" / "jars"
# Where definitions lie inside the jars: clients, coordinators and raft; metadata records; storage.
_FOLDERS = ("common/message/", "common/metadata/", "message/")
# The first release whose jars carry definition files.
_FIRST_WITH_DEFINITIONS = (2, 2)

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>kafkascope</groupId><artifactId>catalog-jars</artifactId><version>1</version><packaging>pom</packaging>
<build><plugins><plugin><artifactId>maven-dependency-plugin</artifactId><version>3.8.1</version>
<configuration><outputDirectory>{output}</outputDirectory><artifactItems>{items}</artifactItems></configuration>
</plugin></plugins></build></project>"""
_ITEM = """<artifactItem><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
</artifactItem>"""


@dataclass(frozen=True, slots=True)
class Release:
    name: str
    version: str
    artifacts: tuple[str, ...]

    @property
    def has_definitions(self) -> bool:
        return tuple(int(part) for part in self.name.split(".")) >= _FIRST_WITH_DEFINITIONS

    def jar(self, artifact: str) -> Path:
        return CACHE / f"{artifact}-{self.version}.jar"


def read_releases() -> list[Release]:
    lines = (HERE / "releases.txt").read_text().splitlines()
    return [Release(n, v, tuple(a)) for n, v, *a in (line.split() for line in lines if not line.startswith("#"))]


def read_patches(releases: list[Release]) -> list[Release]:
    """The patches of `patches.txt`, by the name of their release."""
    names = {release.name for release in releases}
    lines = [line.split() for line in (HERE / "patches.txt").read_text().splitlines() if not line.startswith("#")]
    patches = [Release(version.rpartition(".")[0], version, tuple(artifacts)) for version, *artifacts in lines]
    return [patch for patch in patches if patch.name in names]


def fetch(items: list[tuple[str, str, str]]) -> None:
    """(group, artifact, version) jars into the cache; what is there already is not asked for again."""
    if not _missing(items):
        return
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        # Two builds may start together: one fetches, the other waits and finds the jars there.
        fcntl.flock(lock, fcntl.LOCK_EX)
        missing = _missing(items)
        if not missing:
            return
        listed = "".join(_ITEM.format(group=g, artifact=a, version=v) for g, a, v in missing)
        pom = CACHE / "pom.xml"
        pom.write_text(_POM.format(output=CACHE, items=listed))
        print(f"fetching {len(missing)} jars", flush=True)
        # -C: a jar that differs from the checksum published with it is refused, not warned about
        subprocess.run(["mvn", "-q", "-B", "-C", "-f", str(pom), "dependency:copy"], check=True)


def _missing(items: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    return [item for item in items if not (CACHE / f"{item[1]}-{item[2]}.jar").exists()]


def fetch_releases(releases: list[Release]) -> None:
    fetch([("org.apache.kafka", artifact, r.version) for r in releases for artifact in r.artifacts])


def definition_texts(release: Release) -> Iterator[tuple[str, str]]:
    """(artifact, text) of every definition file of a release."""
    for artifact in release.artifacts:
        with zipfile.ZipFile(release.jar(artifact)) as jar:
            for name in sorted(jar.namelist()):
                if name.endswith(".json") and name.startswith(_FOLDERS):
                    yield artifact, jar.read(name).decode()


def source_texts(folder: Path) -> Iterator[tuple[str, str]]:
    """The same from a source tree: trunk or a fork. A file is a definition if it says `validVersions`."""
    for path in sorted(folder.rglob("*.json")):
        parts = path.relative_to(folder).parts
        text = path.read_text(errors="replace")
        if '"validVersions"' in text and "test" not in parts:
            yield "kafka-clients" if "clients" in (folder.name, *parts) else parts[0], text
