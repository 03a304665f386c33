"""The recorded data directories of three nodes, unpacked, and copies of their files to damage; the capture and the data
directory of one run, with what the broker said about it at its end."""

import tarfile
from collections.abc import Iterable
from pathlib import Path

from kafkascope.logs.batches import Batch, Damage, read_batches
from kafkascope.logs.window import Window

DISKS = Path(__file__).with_name("disks.tar.xz")
TRUTHS = Path(__file__).with_name("truths.tar.xz")
PACKED = "packed-0/00000000000000000000.log"


def unpack_disks(folder: Path) -> Path:
    with tarfile.open(DISKS) as archive:
        archive.extractall(folder, filter="data")
    return folder / "disks"


def unpack_truths(folder: Path) -> Path:
    """`capture.pcap`, `node-1` and `answers.json`, as `lab.two_truths` keeps them."""
    with tarfile.open(TRUTHS) as archive:
        archive.extractall(folder, filter="data")
    return folder / "truths"


def items_of(path: Path, *, last: bool = False) -> list[Batch | Damage]:
    with Window(str(path)) as window:
        return list(read_batches(window, last=last))


def batches_of(path: Path) -> list[Batch]:
    return [item for item in items_of(path) if isinstance(item, Batch)]


def offsets(items: Iterable[Batch | Damage]) -> list[int]:
    return [item.header.base_offset for item in items if isinstance(item, Batch)]
