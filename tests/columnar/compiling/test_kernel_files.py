"""Compiled kernels in files: found by content, whole or not at all, by many processes at once."""

import os
import subprocess
import sys
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

from kafkascope.columnar.compiling.jit import jit
from kafkascope.columnar.compiling.kernel_files import content, read, write
from kafkascope.columnar.compiling.kernel_folder import folder

NOBODY = 65_534
# Compiles `half` of a kernel's signatures, and prints how many came from files.
PROGRAM = """
import sys
import numpy as np
from kafkascope.columnar.compiling.jit import jit

TWICE = 2

@jit
def twice(value):
    return value * TWICE

for kind in sys.argv[1].split():
    assert twice(np.dtype(kind).type(21)) == 42
print(sum(twice.stats.cache_hits.values()), sum(twice.stats.cache_misses.values()))
"""


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    kernel_folder = folder()
    assert kernel_folder is not None
    return kernel_folder


def kernel(source: str, **names: Any) -> FunctionType:
    """A function of that source, whose globals are those names."""
    scope = {"__name__": "kafkascope.capture.made", "np": np, **names}
    exec(source, scope)
    made = scope["kernel"]
    assert isinstance(made, FunctionType)
    return made


def count(made: Any) -> tuple[int, int]:
    return sum(made.stats.cache_hits.values()), sum(made.stats.cache_misses.values())


def test_reads_what_was_written_and_nothing_that_is_cut_or_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a.kernel"
    assert read(path) is None
    write(path, b"some code")
    assert read(path) == b"some code"
    assert os.listdir(tmp_path) == ["a.kernel"]
    assert path.stat().st_mode & 0o777 == 0o600
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert read(path) is None, size
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert read(path) is None, place


def test_reads_no_link_and_no_file_of_another_user(tmp_path: Path) -> None:
    write(tmp_path / "a.kernel", b"some code")
    (tmp_path / "b.kernel").symlink_to(tmp_path / "a.kernel")
    assert read(tmp_path / "b.kernel") is None
    if os.geteuid():
        pytest.skip("only root gives files away")
    os.chown(tmp_path / "a.kernel", NOBODY, -1)
    assert read(tmp_path / "a.kernel") is None


def test_a_folder_that_is_gone_or_full_is_no_error(tmp_path: Path) -> None:
    write(tmp_path / "gone" / "a.kernel", b"some code")
    (tmp_path / "a.kernel").mkdir()
    write(tmp_path / "a.kernel", b"some code")
    assert os.listdir(tmp_path) == ["a.kernel"]


def test_a_kernel_is_compiled_once_and_again_where_its_file_is_cut(kept: Path) -> None:
    function = kernel("def kernel(a): return a + ONE", ONE=1)
    made = [jit(function) for _ in range(3)]
    assert (made[0](1), count(made[0])) == (2, (0, 1))
    assert (made[1](1), count(made[1])) == (2, (1, 0))
    (path,) = kept.glob("*.kernel")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert (made[2](1), count(made[2])) == (2, (0, 1))
    assert read(path) is not None


def test_without_a_folder_kernels_are_compiled_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    made = jit(kernel("def kernel(a): return a + 1"))
    assert (made(1), made.stats.cache_path) == (2, None)


def test_a_changed_constant_of_a_function_that_is_called_is_another_kernel(kept: Path) -> None:
    """The sources on disk are the same here: a process that outlives an upgrade leaves nothing for the new version."""
    results = []
    for step in (1, 2):
        inner = jit(kernel("def kernel(a): return a + STEP", STEP=step))
        results.append(jit(kernel("def kernel(a): return inner(a) * 10", inner=inner))(1))
    assert results == [20, 30]
    assert len(list(kept.glob("*.kernel"))) == 2


def test_content_goes_by_code_constants_and_all_that_is_called() -> None:
    def of(source: str, **names: Any) -> str:
        return content(kernel(source, **names))

    def closed(value: int) -> Any:
        def kernel() -> int:
            return value

        return kernel

    same = of("def kernel(a): return a + ONE", ONE=1)
    assert of("def kernel(a): return a + ONE", ONE=1) == same
    sets = (frozenset([0, 8]), frozenset([8, 0]))
    assert repr(sets[0]) != repr(sets[1])
    assert of("def kernel(a): return a in ONE", ONE=sets[0]) == of("def kernel(a): return a in ONE", ONE=sets[1])
    plain = kernel("def kernel(a): return a + ONE", ONE=1)
    others = [
        of("def kernel(a): return a - ONE", ONE=1),
        of("def kernel(a): return a + ONE", ONE=2),
        of("def kernel(a): return a + ONE", ONE=1.0),
        of("def kernel(a): return a + ONE", ONE=np.int8(1)),
        of("def kernel(a): return a + ONE", ONE=(1, 2)),
        of("def kernel(a): return a + ONE", ONE=(1, 3)),
        of("def kernel(a): return a + ONE", ONE=np.arange(2000)),
        of("def kernel(a): return a + ONE", ONE=np.where(np.arange(2000) == 1000, 0, np.arange(2000))),
        of("def kernel(a): return a + 1"),
        of("def kernel(a): return a + 2"),
        of("def kernel(a): return call(a)", call=jit(plain)),
        of("def kernel(a): return call(a)", call=jit(kernel("def kernel(a): return a + ONE", ONE=2))),
        of("def kernel(a): return call(a)", call=plain),
        of("def kernel(a): return [ONE for _ in a]", ONE=1),
        of("def kernel(a): return [ONE for _ in a]", ONE=2),
        content(closed(1)),
        content(closed(2)),
    ]
    assert len({same, *others}) == len(others) + 1


def functions() -> dict[str, FunctionType]:
    """All that numba compiles for reading recordings."""
    import kafkascope.capture.reader
    import kafkascope.columnar.kernel.entry  # noqa: F401

    return {
        f"{name}.{key}": value.py_func
        for name, module in sorted(sys.modules.items())
        if name.startswith(("kafkascope.capture.", "kafkascope.columnar."))
        for key, value in vars(module).items()
        if isinstance(value, Dispatcher)
    }


def test_every_kernel_has_one_content_in_all_processes() -> None:
    program = (
        "from tests.columnar.compiling.test_kernel_files import content, functions\n"
        "for name, function in functions().items(): print(name, content(function))"
    )
    command = [sys.executable, "-c", program]
    environment = os.environ | {"PYTHONHASHSEED": "1"}
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()
    here = functions()
    assert len(printed) > 200
    for line in printed:
        name, expected_content = line.split()
        assert content(here[name]) == expected_content, name


def test_no_kernel_takes_a_constant_out_of_a_module_of_ours() -> None:
    """As `limits.MAX_STRING_BYTES` would be: its value is not part of the content."""
    for name, function in functions().items():
        named = [function.__globals__.get(key) for key in function.__code__.co_names]
        ours = [value for value in named if isinstance(value, ModuleType) and value.__name__.startswith("kafkascope")]
        assert ours == [], name


def test_processes_that_compile_at_the_same_time_leave_whole_files(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM, encoding="utf-8")
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    kinds = ("int64 int32 int8", "int32 int8 float64")
    running = [
        subprocess.Popen([sys.executable, script, kind], env=environment, stdout=subprocess.PIPE, text=True)
        for kind in kinds
    ]
    assert all(process.communicate()[0] and process.returncode == 0 for process in running)
    again = subprocess.run(
        [sys.executable, script, " ".join(kinds)], env=environment, capture_output=True, text=True, check=True
    )
    assert again.stdout == "4 0\n"


def test_a_kernel_that_another_calls_is_kept_inside_it(kept: Path) -> None:
    @jit
    def inner(value: Any) -> Any:
        return value + 1

    @jit
    def outer(value: Any) -> Any:
        return inner(value) * 2

    assert outer(20) == 42
    assert ["outer" in path.name for path in kept.glob("*.kernel")] == [True]
    # It can be called by itself all the same.
    assert inner(41) == 42
    assert len(list(kept.glob("*.kernel"))) == 2
