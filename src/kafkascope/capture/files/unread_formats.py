"""Names the formats of recordings that aren't read, by their first bytes, with the command that makes them readable."""

import re

# "BZh", the block size, and the start of the first block or of the end of a file without any.
_BZIP2 = re.compile(rb"BZh[1-9](1AY&SY|\x17\x72\x45\x38\x50\x90)")
# A batch of a segment: a small offset, a length of less than 16 MiB that isn't 0, an epoch, magic 2, and no bits of
# attributes that aren't in use; of an older segment a magic of 0 or 1 and its attributes.
_SEGMENT = re.compile(
    rb"\x00\x00[\x00-\x7f].{5}(?!\x00{4})\x00.{3}(.{4}\x02.{4}\x00[\x00-\x7f]\x00\x00|.{4}[\x00\x01][\x00-\x0f])",
    re.DOTALL,
)
_SNOOP = b"snoop\0\0\0"  # RFC 1761


def unread_format(start: bytes) -> str | None:
    """For example `bzip2 data, which isn't read; decompress it first: bunzip2 FILE`; None for all other formats."""
    if _BZIP2.match(start):
        return "bzip2 data, which isn't read; decompress it first: bunzip2 FILE"
    if _SEGMENT.match(start):
        return "a segment of a log directory; list it with kafkascope log FILE"
    if start.startswith(_SNOOP):
        return "a snoop file, which isn't read; convert it first: editcap -F pcap FILE converted.pcap"
    return None
