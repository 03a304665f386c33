"""A packet and its link type in, where the IP header begins and of which version out."""

from typing import Any

import numpy as np

from kafkascope.capture.numbers import Number, Numbers, big16, big32
from kafkascope.columnar.compiling import jit

# What `network_layer` and `by_ether_type` find: an IP version, or one of these.
OTHER, CUT, UNKNOWN_LINK, MPLS, PPPOE, ERSPAN, MACSEC = 0, -1, -2, -3, -4, -5, -6

NULL, ETHERNET, RAW_BSD, RAW_OPENBSD, RAW, LOOP, LINUX_SLL, IPV4, IPV6, LINUX_SLL2 = (
    0,
    1,
    12,
    14,
    101,
    108,
    113,
    228,
    229,
    276,
)
_TAGS = (0x8100, 0x88A8, 0x9100, 0x9200)  # VLAN, QinQ, and what QinQ was before it was a standard
ETHER_IPV4, ETHER_IPV6 = 0x0800, 0x86DD
_LARGEST_LENGTH = 1500  # an Ethernet type up to this is the length of an 802.3 frame


@jit
def network_layer(data: Any, at: Number, end: Number, link: Number) -> Numbers:
    """(where it begins, version)"""
    if link == ETHERNET:
        return ethernet(data, at, end)
    if link == LINUX_SLL:
        if end - at < 16:
            return at, CUT
        return by_ether_type(data, at + 16, end, big16(data, at + 14))
    if link == LINUX_SLL2:
        if end - at < 20:
            return at, CUT
        return by_ether_type(data, at + 20, end, big16(data, at))
    if link == IPV4:
        return at, 4
    if link == IPV6:
        return at, 6
    if link in (RAW, RAW_BSD, RAW_OPENBSD):
        if at >= end:
            return at, CUT
        version = np.int64(data[at] >> 4)
        return at, version if version == 4 or version == 6 else OTHER
    if link in (NULL, LOOP):
        if end - at < 4:
            return at, CUT
        return at + 4, _family(big32(data, at))
    return at, UNKNOWN_LINK


@jit
def _family(number: Number) -> Number:
    """The version of an address family, in whichever byte order the recording machine wrote it."""
    if number > 0xFFFF:
        number = number >> 24 if number & 0xFFFFFF == 0 else np.int64(0)
    if number == 2:
        return 4
    # Linux, NetBSD and OpenBSD, FreeBSD, macOS
    if number == 10 or number == 24 or number == 28 or number == 30:
        return 6
    return OTHER


@jit
def ethernet(data: Any, at: Number, end: Number) -> Numbers:
    if end - at < 14:
        return at, CUT
    return by_ether_type(data, at + 14, end, big16(data, at + 12))


@jit
def by_ether_type(data: Any, at: Number, end: Number, kind: Number) -> Numbers:
    """`at` is behind the type. Any number of VLAN tags may follow, and LLC with SNAP where it is a length."""
    while kind in _TAGS:
        if end - at < 4:
            return at, CUT
        kind = big16(data, at + 2)
        at += 4
    if kind <= _LARGEST_LENGTH and end - at >= 8 and big16(data, at) == 0xAAAA and data[at + 2] == 3:
        kind = big16(data, at + 6)
        at += 8
    if kind == ETHER_IPV4:
        return at, 4
    if kind == ETHER_IPV6:
        return at, 6
    return at, _envelope(kind)


@jit
def _envelope(kind: Number) -> Number:
    """What may hold IP and is not read: it is to be named. All else holds none, as ARP."""
    if kind in (0x8847, 0x8848):
        return MPLS
    if kind == 0x8864:
        return PPPOE
    if kind == 0x88E5:
        return MACSEC
    return OTHER
