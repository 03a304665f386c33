"""Damages a lake in one way, chosen at random: what a broken disk, another program or somebody with bad intentions
leaves in its files."""

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

DEEP = 100_000
# Nonsense of every type that JSON has.
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1 << 31, -(1 << 63), 1 << 63, 10**400, 1e308, "", "x", "../../x", [], {}, [[]], {"a": {}},
)  # fmt: skip
# As texts: Python writes no such number.
TEXTS = (
    b"",
    b"{}",
    b"[]",
    b"null",
    b"1e400",
    b'{"format":1e400}',
    b"[" * DEEP,
    b'{"a":' * DEEP,
    b"\xff\xfe",
    b"\0" * 64,
)


def paths_out(outside: Path) -> list[str]:
    """Names that lead from a table to this file, in every form that a log may have."""
    name = outside.name
    up = ["..", "..", "..", name]
    return [
        "/".join(up),
        "%2e%2e/%2E%2e/" + name,
        "%252e%252e/%252e%252e/" + name,
        "..%2f..%2f" + name,
        "date=2026-11-15/../../../" + name,
        "a/../../../" + name,
        "..\\..\\" + name,
        str(outside),
        f"file://{outside}",
        f"file:{outside}",
        f"FILE://localhost{outside}",
        f"%66ile://{outside}",
        "./" + "/".join(up),
        "//" + str(outside),
    ]


def changed(value: Any, chance: random.Random, where: str = "") -> tuple[Any, str]:
    """One value of a JSON document in the place of another, and where."""
    if isinstance(value, str) and value.startswith(("{", "[")) and chance.random() < 0.7:
        inner, at = changed(json.loads(value), chance, f"{where} (text)")
        return json.dumps(inner), at
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(sorted(value))
        if chance.random() < 0.1:
            return {name: item for name, item in value.items() if name != key}, f"{where}.{key} gone"
        inner, at = changed(value[key], chance, f"{where}.{key}")
        return value | {key: inner}, at
    if isinstance(value, list) and value and chance.random() < 0.9:
        index = chance.randrange(len(value))
        inner, at = changed(value[index], chance, f"{where}[{index}]")
        return [*value[:index], inner, *value[index + 1 :]], at
    near = type(value) is int and chance.random() < 0.5
    new = value + chance.choice([-1, 1, 1 << 10, 1 << 20, 1 << 40, -(1 << 31)]) if near else chance.choice(VALUES)
    return new, f"{where} = {str(new)[:30]!r}"


class Damage:
    """`outside` is a folder that nothing may touch, with a file `kept.parquet` in it."""

    def __init__(self, lake: Path, outside: Path, chance: random.Random) -> None:
        self._lake, self._outside, self._chance = lake, outside, chance
        self._bait = outside / "kept.parquet"

    def do(self) -> str:
        """What was done, in words."""
        kinds: list[tuple[int, Callable[[], str]]] = [
            (3, self._cut), (3, self._flip), (3, self._nonsense), (2, self._special), (2, self._link),
            (1, self._folder), (1, self._gone), (6, self._json), (4, self._name_in_log), (6, self._column),
            (2, self._mark), (2, self._add), (3, self._state), (2, self._swap), (2, self._stats),
        ]  # fmt: skip
        work = self._chance.choices([kind for _, kind in kinds], [weight for weight, _ in kinds])[0]
        return f"{work.__name__[1:]}: {work()}"

    def _file(self, *endings: str) -> Path:
        files = sorted(
            path for path in self._lake.rglob("*") if path.is_file() and path.name.endswith(endings or ("",))
        )
        # Most files are alike: every table is as likely as the others, and so are the files beside them.
        folder = self._chance.choice(sorted({path.relative_to(self._lake).parts[0] for path in files}))
        return self._chance.choice([path for path in files if path.relative_to(self._lake).parts[0] == folder])

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self._lake))

    def _cut(self) -> str:
        path = self._file()
        content = path.read_bytes()
        size = self._chance.randrange(len(content) + 1)
        path.write_bytes(content[:size])
        return f"{self._name(path)} to {size}"

    def _flip(self) -> str:
        path = self._file()
        content = bytearray(path.read_bytes())
        for _ in range(self._chance.choice([1, 1, 8, 64])):
            if content:
                # Of Parquet the end is what is read first.
                low = self._chance.choice([0, max(0, len(content) - 400)])
                content[self._chance.randrange(low, len(content))] = self._chance.randrange(256)
        path.write_bytes(bytes(content))
        return self._name(path)

    def _nonsense(self) -> str:
        path = self._file()
        content = self._chance.choice([*TEXTS, self._chance.randbytes(300)])
        path.write_bytes(content)
        return f"{self._name(path)} is {content[:20]!r}, {len(content)} bytes"

    def _special(self) -> str:
        path = self._file()
        path.unlink()
        if self._chance.random() < 0.5:
            path.mkdir()
            return f"{self._name(path)} is a folder"
        os.mkfifo(path)
        return f"{self._name(path)} is a pipe"

    def _link(self) -> str:
        path = self._file()
        path.unlink()
        to = self._chance.choice([str(self._bait), str(path), str(self._outside), "/dev/zero", "nowhere", ".."])
        path.symlink_to(to)
        return f"{self._name(path)} leads to {to}"

    def _folder(self) -> str:
        folders = sorted(path for path in self._lake.rglob("*") if path.is_dir())
        path = self._chance.choice(folders)
        shutil.rmtree(path)
        to = self._chance.choice([str(self._outside), str(path), "..", ".", None])
        if to is None:
            path.write_bytes(b"x")
            return f"{self._name(path)} is a file"
        path.symlink_to(to)
        return f"folder {self._name(path)} leads to {to}"

    def _gone(self) -> str:
        path = self._file()
        path.unlink()
        return f"{self._name(path)} is gone"

    def _add(self) -> str:
        folder = self._chance.choice(sorted(path for path in self._lake.rglob("*") if path.is_dir()))
        name = self._chance.choice(
            ["x", "date=2026-11-15", "loop.parquet", "00000000000000000009.json", "a.progress", "z.json"]
        )
        to = self._chance.choice([str(self._outside), "..", ".", name, str(self._bait)])
        path = folder / name
        if path.exists():
            return "nothing"
        path.symlink_to(to)
        return f"{self._name(path)} leads to {to}"

    def _json(self) -> str:
        """One value of a JSON document in the place of another."""
        path = self._file(".json", "_last_checkpoint")
        lines = path.read_text().splitlines()
        if not lines:
            return "nothing"
        number = self._chance.randrange(len(lines))
        value = json.loads(lines[number])
        value, where = changed(value, self._chance)
        lines[number] = json.dumps(value)
        path.write_text("\n".join(lines) + "\n")
        return f"{self._name(path)} line {number}{where}"

    def _state(self) -> str:
        """A number of what an ingest left unfinished."""
        path = self._chance.choice(sorted((self._lake / "unfinished").glob("*.parquet")))
        rows = pq.read_table(path, partitioning=None)
        at = rows.schema.get_field_index("state")
        states = rows.column(at).to_pylist()
        number = self._chance.randrange(len(states))
        value, where = changed(json.loads(states[number]), self._chance)
        states[number] = json.dumps(value)
        pq.write_table(rows.set_column(at, rows.schema.field(at), pa.array(states, pa.string())), path)
        return f"row {number}{where}"

    def _swap(self) -> str:
        """The data files or the whole folders of two tables, each in the other's place."""
        if self._chance.random() < 0.3:
            first, second = self._chance.sample(self._tables(), 2)
        else:
            first, second = (self._file(".parquet") for _ in range(2))
        beside = self._lake / "beside"
        for old, new in ((first, beside), (second, first), (beside, second)):
            if old != new and old.exists():
                old.rename(new)
        return f"{self._name(first)} and {self._name(second)}"

    def _stats(self) -> str:
        """What a log says of a data file: sizes, rows and bounds that no file has."""
        logs = [path for path in sorted(self._lake.rglob("_delta_log/*.json")) if path.is_file()]
        logs = [path for path in logs if '"stats"' in path.read_text()]
        path = self._chance.choice(logs)
        huge = self._chance.choice([2**31, 2**62, 2**63 - 1, -1, -(2**63)])
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for add in (line["add"] for line in lines if "add" in line):
            stats = json.loads(add.get("stats") or "{}")
            bounds = {name: dict.fromkeys(stats.get(name) or {}, huge) for name in ("minValues", "maxValues")}
            kind = self._chance.choice(["size", "numRecords", "bounds", "nullCount", "modificationTime"])
            if kind in add:
                add[kind] = huge
            else:
                new = bounds if kind == "bounds" else {kind: {"x": huge} if kind == "nullCount" else huge}
                add["stats"] = json.dumps(stats | new)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return f"{self._name(path)} {huge}"

    def _tables(self) -> list[Path]:
        return sorted(path for path in self._lake.iterdir() if path.is_dir() and path.name[0] != "_")

    def _name_in_log(self) -> str:
        logs = [path for path in sorted(self._lake.rglob("_delta_log/*.json")) if path.is_file()]
        path = self._chance.choice(logs)
        name = self._chance.choice(paths_out(self._bait))
        action = self._chance.choice(["add", "remove", "both"])
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        adds = [line["add"] for line in lines if "add" in line]
        add = dict(adds[0]) if adds else {"size": 1, "partitionValues": {}, "modificationTime": 1, "dataChange": True}
        if action in ("add", "both"):
            lines.append({"add": add | {"path": name}})
        if action in ("remove", "both"):
            lines.append({"remove": {"path": name, "deletionTimestamp": 1, "dataChange": True}})
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return f"{self._name(path)} {action} {name}"

    def _mark(self) -> str:
        """A sign of life that names another file than its own."""
        name = self._outside.name + "/kept"
        then = "2020-01-01T00:00:00"
        mark: dict[str, Any] = {
            "ingest_id": self._chance.choice([f"../../{name}", str(self._outside / "kept"), "..", "a/b", "x" * 5000]),
            "token": self._chance.choice(["t", "../x"]),
            "user": "u",
            "host": "h",
            "pid": 1,
            "started": f"{then}+00:00",
            "beat": self._chance.choice([f"{then}+00:00", then, then[:10]]),
        }
        path = self._lake / "_ingests" / f"{self._chance.choice(['m', 'ffff-1'])}.json"
        path.write_text(json.dumps(mark))
        return f"{str(mark['ingest_id'])[:60]} {mark['token']} {mark['beat']}"

    def _column(self) -> str:
        """A column of a Parquet file with other values, another type or another name, in a file that is whole."""
        path = self._file(".parquet")
        rows = pq.read_table(path, partitioning=None)
        at = self._chance.randrange(rows.num_columns)
        field = rows.schema.field(at)
        count = len(rows)
        kind = self._chance.choice(["null", "type", "gone", "value", "value", "rows"])
        if kind == "null":
            rows = rows.set_column(at, field, pa.nulls(count, field.type))
        elif kind == "type":
            new = self._chance.choice(
                [
                    pa.array([1.5] * count),
                    pa.array([b"\xff"] * count),
                    pa.array([["a"]] * count),
                    pa.array([True] * count),
                ]
            )
            rows = rows.set_column(at, field.name, new)
        elif kind == "gone":
            rows = rows.drop_columns([field.name])
        elif kind == "rows":
            rows = rows.slice(0, 0)
        else:
            rows = rows.set_column(at, field, pa.array([self._value(field.type) for _ in range(count)], field.type))
        pq.write_table(rows, path)
        return f"{self._name(path)} {kind} {field.name}"

    def _value(self, type_: pa.DataType) -> Any:
        if pa.types.is_timestamp(type_):
            return self._chance.choice([0, -(2**63), 2**63 - 1])
        if pa.types.is_integer(type_):
            return self._chance.choice([-1, 0, 2 ** (type_.bit_width - 1) - 1, -(2 ** (type_.bit_width - 1))])
        if pa.types.is_string(type_):
            return self._chance.choice(
                [
                    "",
                    "x" * 70_000,
                    "../../x",
                    "s3://nowhere.invalid/x",
                    "[" * 5000,
                    '{"form":2}',
                    str(self._bait),
                    "\x1b[31m\n",
                    "/dev/zero",
                ]
            )
        if pa.types.is_list(type_) and pa.types.is_string(type_.value_type):
            return self._chance.choice([[], [None], [""], ["x"] * 3])
        return None
