"""Names the formats of recordings that aren't read, by their first bytes, with the command that makes them readable."""

import re

# "BZh", the block size, and the start of the first block or of the end of a file without any.
_BZIP2 = re.compile(rb"BZh[1-9](1AY&SY|\x17\x72\x45\x38\x50\x90)")
_SNOOP = b"snoop\0\0\0"  # RFC 1761


def unread_format(start: bytes) -> str | None:
    """For example `bzip2 data, which isn't read; decompress it first: bunzip2 FILE`; None for all other formats."""
    if _BZIP2.match(start):
        return "bzip2 data, which isn't read; decompress it first: bunzip2 FILE"
    if start.startswith(_SNOOP):
        return "a snoop file, which isn't read; convert it first: editcap -F pcap FILE converted.pcap"
    return None
