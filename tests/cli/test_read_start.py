"""The start of `read`: packages that others would load, and nobody here needs, are left alone."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.captures import capture
from tests.support.cli import process

STUB = "import sys\nsys.stderr.write('loaded ' + __name__ + '\\n')\n__version__ = '2.3.3'\n"
READ = "import sys\nfrom kafkascope.capture.reader import read_batches\n"


@pytest.fixture
def recorded(tmp_path: Path) -> str:
    path = tmp_path / "share.pcap"
    path.write_bytes(capture("share"))
    return str(path)


def stubs(folder: Path, *names: str) -> str:
    for name in names:
        (folder / f"{name}.py").write_text(STUB)
    return str(folder)


def test_read_loads_neither_pandas_nor_cffi(tmp_path: Path, recorded: str) -> None:
    done = process("read", recorded, PYTHONPATH=stubs(tmp_path, "pandas", "cffi"))
    assert done.returncode == 0
    assert b"ShareFetch" in done.stdout
    assert b"loaded" not in done.stderr


def test_exchanges_as_columns_do_not_load_pandas(tmp_path: Path, recorded: str) -> None:
    """Also where it is no command's process, and pandas may be had."""
    code = f"{READ}print(sum(len(one) for one in read_batches({recorded!r})))"
    environment = {"PYTHONPATH": stubs(tmp_path, "pandas")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert int(done.stdout) > 100
    assert "loaded pandas" not in done.stderr
