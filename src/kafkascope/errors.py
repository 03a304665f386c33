"""Defines one small tree of errors. Each message is one line with the place and the fix.

KafkascopeError
├── UsageError          wrong use: an unknown message, a version that doesn't exist (exit code 2)
│   └── NotFoundError   nothing has that name (exit code 1)
├── InputError          bad input: odd hex, an empty file, more bytes than a limit allows (exit code 3)
│   ├── DecodeError     bytes that aren't this message
│   └── KernelError     a check inside a compiled kernel stopped it: a bug of ours, and no memory was touched
├── EncodeError         a value that isn't this message (exit code 3)
├── ReachError          no connection, no authentication, or no response in time (exit code 4)
└── RefusedError        a broker returned an error code (exit code 1)
    └── AcknowledgeError  acknowledgements of a share consumer that didn't count

A message never contains the bytes it is about, since they may be secret.
"""


class KafkascopeError(Exception):
    """Base of all errors that this package raises on purpose."""

    exit_code = 3


class UsageError(KafkascopeError):
    """ShareFetchRequest has versions 0-2 (0: 3.9-4.0, 1-2: 4.1+); 7 is not one of them."""

    exit_code = 2


class NotFoundError(UsageError):
    """unknown message ShareFetchRequst; did you mean ShareFetchRequest?"""

    exit_code = 1


class InputError(KafkascopeError):
    """hex has an odd number of digits (89); a byte is two."""


class DecodeError(InputError):
    """ShareFetchRequest v2, topics[0].partitions: count 70000 needs 140000 bytes, 41 left (offset 132)"""


class KernelError(InputError):
    """night.pcap, after packet 1,204: a kernel reached past its arrays, and was stopped before it touched anything"""

    @classmethod
    def at(cls, place: str) -> "KernelError":
        problem = "a kernel reached past its arrays, and was stopped before it touched anything"
        return cls(f"{place}: {problem}; this is a bug, please report it")


class EncodeError(KafkascopeError):
    """ShareFetchRequest v2, topics[0].partitions[0].partitionIndex: expected int32, got a str"""


class ReachError(KafkascopeError):
    """DescribeQuorum v2 at 127.0.0.1:9092: no response within 10 s; --timeout SECONDS waits longer"""

    exit_code = 4


class RefusedError(KafkascopeError):
    """DescribeQuorum v2 at 127.0.0.1:9092: CLUSTER_AUTHORIZATION_FAILED (31); it needs DESCRIBE on the cluster"""

    exit_code = 1

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class AcknowledgeError(RefusedError):
    """orders-0 offset 12-14: accept didn't count: INVALID_RECORD_STATE (121)"""

    def __init__(self, message: str, code: int, parts: tuple[object, ...] = ()) -> None:
        super().__init__(message, code)
        self.parts = parts
