"""Reads the catalog's text files on first use."""

from os.path import dirname, join

DATA_FOLDER = join(dirname(__file__), "data")


def text(name: str) -> str:
    with open(join(DATA_FOLDER, name), encoding="utf-8") as file:
        return file.read()


def lines(name: str) -> list[str]:
    return [line for line in text(name).splitlines() if line and not line.startswith("#")]
