"""Everything that a fuzzer must notice, done on purpose: the test of the fuzzers themselves."""

import ctypes
import time
from random import Random

from kafkascope.errors import InputError
from tests.hostile.guard import guarded_bytes
from tests.hostile.reading import expect_no_kernel_error


class KernelError(InputError):
    """A bound that a kernel was stopped at."""


def make(random: Random) -> bytes:
    return random.choice(list(BEHAVIOURS)).encode()


def run(data: bytes) -> str:
    return BEHAVIOURS[data.decode()]()


def _fine() -> str:
    return "fine"


def _index_error() -> str:
    raise IndexError("index 7 is out of bounds for axis 0 with size 7")


def _kernel_error() -> str:
    expect_no_kernel_error(KernelError("stopped"))
    return "not noticed"


def _read_after_the_end() -> str:
    array = guarded_bytes(100)
    return str(ctypes.c_uint8.from_address(array.ctypes.data + 100).value)


def _hang() -> str:
    time.sleep(3_600)
    return "not noticed"


def _memory() -> str:
    return "not noticed" if bytearray(b"x") * 1_050_000_000 else ""


BEHAVIOURS = {
    "fine": _fine,
    "no end": _hang,
    "IndexError": _index_error,
    "KernelError": _kernel_error,
    "SIGSEGV": _read_after_the_end,
    "bytes of memory": _memory,
}
