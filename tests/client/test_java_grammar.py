"""Our reading of .properties files and JAAS lines against Java's own, on texts made of the characters that matter."""

import base64
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkascope.client.config.jaas import parse_jaas
from kafkascope.client.config.properties import parse_properties
from kafkascope.errors import InputError
from lab.jars import joined, kafka_path

pytestmark = pytest.mark.heavy

HERE = Path(__file__).parent
CASES = 3000
SEED = 7
PROPERTIES = [*"ab=: \t\f\\#!\n\r", "\r\n", "\\\n", "\\u00e9", "\\u12", "key", "ä", "'", '"', "\\t", "\\\\"]
JAAS = [
    *"ab= ;\"'\\/*-_$.07#,\n",
    *("=", '="', '" ', "='", "' ", "//", "/*", "*/", "\\n", "\\101", "\\8", "ä", "name", "optional", "12", "-3", '\\"'),
]
MODULE = "org.example.Module required"


def texts(pieces: list[str], front: str = "", back: str = "") -> list[str]:
    chance = random.Random(SEED)
    return [front + "".join(chance.choices(pieces, k=chance.randint(1, 24))) + back for _ in range(CASES)]


TEXTS = {
    "properties": texts(PROPERTIES),
    "jaas": [*texts(JAAS, f"{MODULE} "), *texts(JAAS, f"{MODULE} ", ";"), *texts(JAAS, f'{MODULE} n="', '";')],
}


def encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode("utf-8", "replace")).decode().rstrip("=")


# without a name there is no setting; when Java makes one of a backslash at the end is its own affair
def ours(text: str, read: Callable[[str], dict[str, str]]) -> str:
    try:
        config = read(text)
    except InputError:
        return "refused"
    return "".join(["read", *(f" {encoded(name)}={encoded(config[name])}" for name in sorted(config) if name)])


@pytest.fixture(scope="module")
def java() -> dict[str, list[str]]:
    """What Java reads, by kind; one JVM for all."""
    lines = [f"{kind} {base64.b64encode(case.encode()).decode()}\n" for kind in TEXTS for case in TEXTS[kind]]
    command = ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", joined(kafka_path()), str(HERE / "Judge.java")]
    done = subprocess.run(command, input="".join(lines), capture_output=True, text=True, timeout=120, check=True)
    lines_printed = iter(done.stdout.splitlines())
    return {kind: [next(lines_printed) for _ in TEXTS[kind]] for kind in TEXTS}


def _properties(text: str) -> dict[str, str]:
    return parse_properties(text, "file")


def _jaas(text: str) -> dict[str, str]:
    return parse_jaas(text, "file").options


@pytest.mark.parametrize(("kind", "read"), [("properties", _properties), ("jaas", _jaas)])
def test_java_reads_the_same(java: dict[str, list[str]], kind: str, read: Callable[[str], dict[str, str]]) -> None:
    mine = [ours(case, read) for case in TEXTS[kind]]
    cases = zip(TEXTS[kind], mine, java[kind], strict=True)
    wrong = [(case, parsed, expected) for case, parsed, expected in cases if parsed != expected]
    assert not wrong, f"{len(wrong)} of {len(mine)} (seed {SEED}): {wrong[:5]}"
    assert 0.01 < mine.count("refused") / len(mine) < 0.99
