"""Lists the Java exceptions of error codes from Kafka's client jar, with their packages and superclasses.

They decide what a client does with it: retry, refresh its metadata, start again, or fail.
"""

import zipfile
from pathlib import Path

from tools.catalog.classfile import ClassFile

# Errors takes them from here; an exception of the same name elsewhere is another one.
_PACKAGES = ("org.apache.kafka.common.errors", "org.apache.kafka.common")
# Where every chain ends that is of use.
TOP = "org.apache.kafka.common.KafkaException"


def exception_lines(release: str, jar: Path, names: list[str]) -> list[str]:
    """Nearest superclass first, without the one that all have."""
    with zipfile.ZipFile(jar) as opened:
        listed = set(opened.namelist())
        rows = [f"# package and superclasses of the exceptions of error codes in Kafka {release}"]
        for name in sorted(set(names)):
            package = next(item for item in _PACKAGES if _entry(f"{item}.{name}") in listed)
            rows.append(" ".join((name, package, *_parents(opened, f"{package}.{name}"))))
    return rows


def _parents(jar: zipfile.ZipFile, name: str) -> list[str]:
    parents = []
    while name != TOP:
        name = ClassFile(jar.read(_entry(name))).parent.replace("/", ".")
        parents.append(name.rpartition(".")[2])
    return parents[:-1]


def _entry(name: str) -> str:
    return f"{name.replace('.', '/')}.class"
