"""The entry kernel is made once a process, and kept with the others."""

from pathlib import Path

from kafkascope.columnar.compiling.kernel_folder import folder
from kafkascope.columnar.kernel.entry import kernel, warm_up


def test_warm_up_says_where_the_kernel_is_kept() -> None:
    made = warm_up()
    assert made.seconds >= 0
    assert made.folder is not None and Path(made.folder) == folder()
    assert kernel() is kernel()
    assert list(Path(made.folder).glob("kafkascope.columnar.kernel.entry._run-*.kernel"))
