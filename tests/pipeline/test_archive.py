"""An environment that is packed with its kernels works where it is unpacked, and compiles none there."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution, requires
from pathlib import Path

import pytest

from kafkascope.capture.warm_up.run import warm_up
from kafkascope.columnar.compiling.kernel_folder import base_folder
from tests.pipeline.cluster import HOME, JOB_SECONDS, as_options, environment, job_settings, standalone
from tests.pipeline.test_ingest import capture

PACKAGES = ("click", "cramjam", "crc32c", "numba", "pyarrow", "deltalake", "pandas")
# What a worker does first, and what it had to look for or compile.
LOADS = """
import json, sys
import kafkascope
from kafkascope.capture.warm_up.kernels import load_all
from kafkascope.columnar.compiling import kernel_files
from kafkascope.columnar.compiling.kernel_folder import contents, folder, is_complete

compiled = []
save = kernel_files.KernelFiles.save_overload
kernel_files.KernelFiles.save_overload = lambda *given: compiled.append(1) or save(*given)
was_complete = is_complete(folder())
load_all()
print(json.dumps([sys.prefix, kafkascope.__file__, str(folder()), was_complete, len(compiled), contents(folder())[0]]))
"""


def with_requirements(names: Iterable[str]) -> set[str]:
    """Of what is installed here."""
    requirements: set[str] = set()
    for name in names:
        with suppress(PackageNotFoundError):
            lines = [line for line in requires(name) or () if "extra ==" not in line]
            requirements |= {name} | with_requirements(re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in lines)
    return requirements


def build(home: Path, wheel: Path, *, whole: bool) -> None:
    """A virtual environment with the package, what it needs, and its kernels. If not `whole`, it links to the packages
    of this one."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python"), "install", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--quiet", "--disable-pip-version-check", str(wheel)], check=True)
    (packages,) = home.glob("lib/python*/site-packages")
    for name in sorted(with_requirements(PACKAGES)):
        for part in {file.parts[0] for file in distribution(name).files or ()} - {"..", "__pycache__", "bin"}:
            source = Path(str(distribution(name).locate_file(part)))
            if not whole:
                (packages / part).symlink_to(source)
            elif source.is_dir():
                shutil.copytree(source, packages / part, ignore=shutil.ignore_patterns("tests", "__pycache__"))
            else:
                shutil.copy(source, packages / part)
    # The wheel has the same sources, so these are its kernels.
    kept = Path(warm_up().folder)
    user = home / "kernels" / f"kafkascope-{os.geteuid()}"
    user.mkdir(parents=True, mode=0o700)
    shutil.copytree(kept, user / kept.name)
    assert base_folder() == kept.parent


def pack(home: Path, archive: Path) -> None:
    with tarfile.open(archive, "w:gz", compresslevel=1) as packed:
        packed.add(home, ".")


@pytest.mark.heavy
def test_an_unpacked_environment_loads_the_kernels_that_were_packed(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "built"
    build(home, wheel, whole=False)
    pack(home, tmp_path / "environment.tar.gz")
    shutil.rmtree(home)
    elsewhere = tmp_path / "work" / "app" / "0"
    (elsewhere / "environment").mkdir(parents=True)
    with tarfile.open(tmp_path / "environment.tar.gz") as packed:
        packed.extractall(elsewhere / "environment", filter="fully_trusted")  # noqa: S202 - packed above
    clean = {"PATH": os.environ["PATH"], "NUMBA_CACHE_DIR": "./environment/kernels"}
    done = subprocess.run(
        ["./environment/bin/python", "-c", LOADS], cwd=elsewhere, env=clean, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    prefix, package, kernels, was_complete, compiled, count = json.loads(done.stdout)
    inside = str(elsewhere / "environment")
    assert prefix == inside and package.startswith(inside) and kernels.startswith(f"{inside}/kernels/")
    assert was_complete and compiled == 0 and count > 40


@pytest.mark.soak
@pytest.mark.skipif("KAFKASCOPE_SOAK" not in os.environ, reason="runs in make soak")
def test_workers_of_a_cluster_read_with_the_environment_of_the_job(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "environment"
    build(home, wheel, whole=True)
    archive = tmp_path / "environment.tar.gz"
    pack(home, archive)
    settings = job_settings(3) | {
        "spark.pyspark.driver.python": sys.executable,
        "spark.pyspark.python": "./environment/bin/python",
        "spark.executorEnv.NUMBA_CACHE_DIR": "./environment/kernels",
        # Of the workers themselves: this machine's packages are not to be found.
        "spark.executorEnv.PYTHONPATH": "",
    }
    # Where the driver runs there is one of that name too, as on the machine that packed it.
    recording = capture("share", tmp_path)
    with standalone(tmp_path) as master:
        command = [str(HOME / "bin" / "spark-submit"), "--master", master, "--archives", f"{archive}#environment"]
        variables = {name: value for name, value in environment().items() if name != "PYSPARK_PYTHON"}
        done = subprocess.run(
            [*command, *as_options(settings), str(Path(__file__).with_name("archive_job.py")), str(recording), "lake"],
            capture_output=True,
            text=True,
            timeout=JOB_SECONDS,
            cwd=tmp_path,
            env={**os.environ, **variables},
        )
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert (report["exchanges"], report["bad"]) == (404, {})
    for executor in report["before"] + report["after"]:
        assert executor["prefix"].startswith(str(tmp_path / "work-")) and executor["prefix"].endswith("environment")
        assert executor["package"].startswith(executor["prefix"]) and executor["kernels"].startswith(executor["prefix"])
        assert executor["complete"]
    # No executor compiled one.
    assert len({executor["count"] for executor in report["before"] + report["after"]}) == 1
