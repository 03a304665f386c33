"""Downloads and builds what the lab needs, once, under `.cache/lab`: Kafka's jars, older Java clients, Python
clients, the lab's own Java programs and a class archive."""

import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.pin_files import read, written

_HERE = Path(__file__).resolve().parent
_CACHE = _HERE.parent / ".cache" / "lab"
_POM = _HERE / "pom.xml"
_PROGRAMS = sorted((_HERE / "java").glob("*.java"))

KAFKA = "4.3.1"
# releases that brokers run beside the newest, each with a pom and a folder of its own
_OLDER = {"3.9.2": _HERE / "pom-3.9.xml"}
RELEASES = (KAFKA, *_OLDER)
JAVA_CLIENTS = ("2.8.2", "3.9.1", KAFKA)
# each in a folder of its own: two releases of one library cannot share an environment
PYTHON_CLIENTS = ("confluent-kafka==2.16.1", "kafka-python==3.0.12", "kafka-python==2.0.6")
# their hashes, written by `make pins`
CLIENT_PINS = _HERE / "clients.txt"
# -C: a jar that differs from the checksum published with it is refused, not warned about
_MAVEN = ("mvn", "-q", "-B", "-C")

# a laptop's share of memory, and a start in seconds rather than speed in minutes
JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Duser.timezone=UTC")


def kafka_path(release: str = KAFKA) -> list[Path]:
    """The class path of brokers: jars of broker, tools, streams and client."""
    if release != KAFKA:
        return _older_path(release)
    folder = _CACHE / "jars"

    goals = ["dependency:copy-dependencies@kafka", "dependency:copy@clients", f"-Doutput={folder}"]
    _once(folder, _digest(_POM), lambda: _copied(folder, _POM, goals))
    return sorted((folder / "kafka").glob("*.jar"))


def _older_path(release: str) -> list[Path]:
    pom, folder = _pom(release), _CACHE / release
    goals = ["dependency:copy-dependencies@kafka", f"-Doutput={folder}"]
    _once(folder, _digest(pom), lambda: _copied(folder, pom, goals))
    return sorted((folder / "kafka").glob("*.jar"))


def hdfs_path() -> list[Path]:
    """The class path of HDFS in one process."""
    pom, folder = _HERE / "hdfs" / "pom.xml", _CACHE / "hdfs"
    goals = ["dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
    _once(folder, _digest(pom), lambda: _copied(folder, pom, goals))
    return sorted(folder.glob("*.jar"))


def _copied(folder: Path, pom: Path, goals: list[str]) -> None:
    for stale in folder.rglob("*.jar"):
        stale.unlink()
    run([*_MAVEN, "-f", str(pom), *goals])


def _pom(release: str) -> Path:
    if release not in RELEASES:
        raise RuntimeError(f"the lab runs brokers of {', '.join(RELEASES)}, not of {release}")
    return _POM if release == KAFKA else _OLDER[release]


def program_path(release: str = KAFKA) -> list[Path]:
    """The class path of the lab's own programs on the client of a release. They come last and as a jar: the class
    archive serves every class path that begins with Kafka's jars, and none with a folder in it."""
    jars = kafka_path()
    if release != KAFKA:
        older = _CACHE / "jars" / "clients" / f"kafka-clients-{release}.jar"
        jars = [older, *(jar for jar in jars if not jar.name.startswith("kafka-"))]
    return [*jars, programs()]


def python_path(client: str) -> Path:
    """The folder that holds a Python client, for PYTHONPATH; pip fetches it the first time."""
    folder = _CACHE / "python" / client.replace("==", "-")

    def install() -> None:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-warn-conflicts"]
        pin = folder / "pin.txt"
        pin.write_text(written(pin for pin in read(CLIENT_PINS) if pin.requirement == client))
        run([*pip, "--require-hashes", "--only-binary=:all:", "--no-deps", "--target", str(folder), "-r", str(pin)])

    _once(folder, client + _digest(CLIENT_PINS), install)
    return folder


def archive(release: str = KAFKA) -> Path:
    """The path of the class archive of this Java; `make_archive` in `lab.cluster` writes it. One a folder:
    whatever else is there is stale."""
    java = subprocess.run(["java", "-version"], capture_output=True, check=True).stderr
    key = hashlib.sha256(java + _digest(_pom(release)).encode()).hexdigest()
    return (_CACHE if release == KAFKA else _CACHE / release) / f"classes-{key[:16]}.jsa"


def joined(path: list[Path]) -> str:
    return os.pathsep.join(str(entry) for entry in path)


def programs() -> Path:
    """The lab's own Java programs, as a jar."""
    needed = joined(kafka_path())
    folder = _CACHE / "programs"
    jar = folder / "lab.jar"

    def compile_them() -> None:
        classes = folder / "classes"
        for stale in classes.glob("*.class"):
            stale.unlink()
        run(["javac", "-proc:none", "-Xlint:-options", "-cp", needed, "-d", str(classes), *map(str, _PROGRAMS)])
        run(["jar", "--create", "--file", str(jar), "-C", str(classes), "."])

    _once(folder, _digest(_POM, *_PROGRAMS), compile_them)
    return jar


def _once(folder: Path, key: str, make: Callable[[], None]) -> None:
    """Only a finished run leaves the stamp."""
    stamp = folder / "stamp"
    with locked(folder.name):
        if not stamp.is_file() or stamp.read_text() != key:
            folder.mkdir(parents=True, exist_ok=True)
            make()
            stamp.write_text(key)


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Test workers start together: one makes, the others wait."""
    _CACHE.mkdir(parents=True, exist_ok=True)
    with (_CACHE / f"{name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def run(command: list[str], timeout: float = 600) -> str:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} exited with {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def _digest(*files: Path) -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
