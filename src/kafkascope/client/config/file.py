"""Reads a file of client settings in Java's or librdkafka's format, which it recognizes by the keys."""

from pathlib import Path

from kafkascope.client.config.java import JAVA_ONLY, from_java
from kafkascope.client.config.librdkafka import LIBRDKAFKA_ONLY, from_librdkafka, parse_librdkafka
from kafkascope.client.config.merge import PartialSettings
from kafkascope.client.config.properties import parse_properties
from kafkascope.client.small_file import read_small
from kafkascope.errors import InputError
from kafkascope.limits import MAX_CONFIG_BYTES


def read_config(path: Path) -> PartialSettings:
    text = _read(path)
    # librdkafka has no escapes or continuations; the keys that distinguish the formats need neither
    names = set(parse_librdkafka(text))
    if len(names & LIBRDKAFKA_ONLY) > len(names & JAVA_ONLY):
        return from_librdkafka(parse_librdkafka(text), str(path))
    return from_java(parse_properties(text, str(path)), str(path))


def _read(path: Path) -> str:
    content = read_small(path, MAX_CONFIG_BYTES, "is it a file of client settings?")
    if b"\0" in content:
        raise InputError(f"{path} isn't text; --config takes client.properties or a librdkafka config")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        # Java's own readers fall back to it too
        return content.decode("latin-1")
