"""Cases (message, version, JSON, hex) in, what Kafka's own codec of a release makes of each out; by Maven and Java."""

import fcntl
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[1] / ".cache" / "judge"
POM = HERE / "pom.xml"
SOURCE = HERE / "Judge.java"

# a judge lives for seconds: start quickly rather than run fast
JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx1g", "-Xshare:auto")

# Judge.java names only classes that every release has, so one compilation serves them all
COMPILED_AGAINST = "4.3.1"

# -C: a jar that differs from the checksum published with it is refused, not warned about
MAVEN = ("mvn", "-q", "-B", "-C")

Case = tuple[str, int, str, str]
NOT_ASKED = "-"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a release says: hex, hex and JSON; `!absent` where it lacks the message, `!Class: text` where it failed."""

    from_json: str
    rewritten: str
    json: str


def judge(release: str, cases: Iterable[Case]) -> list[Verdict]:
    """One verdict a case, in order. A JSON or hex that is `NOT_ASKED` is not judged."""
    classpath = [_classes(), *jars(release)]
    with tempfile.TemporaryDirectory() as folder:
        cases_file, verdicts_file = Path(folder, "cases.tsv"), Path(folder, "verdicts.tsv")
        count = 0
        with cases_file.open("w", encoding="utf-8", newline="") as lines:
            for message, version, json_text, hexes in cases:
                # raw line breaks and tabs in JSON can only be white space between tokens
                flat = json_text.translate({9: " ", 10: " ", 13: " "})
                lines.write(f"{message}\t{version}\t{flat}\t{hexes}\n")
                count += 1
        _run(["java", *JVM, "-cp", _path(classpath), "Judge", str(cases_file), str(verdicts_file)])
        rows = verdicts_file.read_text(encoding="utf-8").split("\n")[:-1]
    if len(rows) != count:
        raise RuntimeError(f"{count} cases for Kafka {release}, {len(rows)} verdicts")
    return [Verdict(*row.split("\t")) for row in rows]


def jars(release: str) -> list[Path]:
    """The jars of a release that pom.xml names, with what they need; copied by Maven the first time."""
    return [*_copied(release), *_copied("shared")]


def _copied(execution: str) -> list[Path]:
    folder = CACHE / execution
    stamp = folder / "stamp"
    digest = _digest(POM)
    with _locked():
        if not stamp.is_file() or stamp.read_text() != digest:
            for stale in folder.glob("*.jar"):
                stale.unlink()
            _run([*MAVEN, "-f", str(POM), f"dependency:copy@{execution}", f"-Doutput={CACHE}"])
            stamp.write_text(digest)
    return sorted(folder.glob("*.jar"))


def _classes() -> Path:
    needed = jars(COMPILED_AGAINST)
    folder = CACHE / f"classes-{_digest(SOURCE)[:16]}"
    with _locked():
        # javac writes the nested classes first or last as it likes, so only a finished run leaves the stamp
        if not (folder / "stamp").is_file():
            folder.mkdir(parents=True, exist_ok=True)
            _run(["javac", "-proc:none", "-cp", _path(needed), "-d", str(folder), str(SOURCE)])
            (folder / "stamp").touch()
    return folder


@contextmanager
def _locked() -> Iterator[None]:
    """Test workers start together: one fetches, the others wait."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _run(command: list[str]) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} exited with {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")


def _path(entries: Iterable[Path]) -> str:
    return os.pathsep.join(str(entry) for entry in entries)


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
