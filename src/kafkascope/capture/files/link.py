"""Finds where the IP header of a packet begins, and its version, by the packet's link type."""

from typing import Any

import numpy as np

from kafkascope.capture.base.numbers import Number, Numbers, big16, big32
from kafkascope.columnar.compiling.jit import jit

# `network_layer` and `by_ether_type` return an IP version, or one of these.
OTHER, CUT, UNKNOWN_LINK, PPPOE, ERSPAN, MACSEC, GTP_U, VXLAN_GPE = 0, -1, -2, -3, -4, -5, -6, -7

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
_TAGS = (0x8100, 0x88A8, 0x9100, 0x9200)  # VLAN, QinQ, and QinQ before it was a standard
ETHER_IPV4, ETHER_IPV6 = 0x0800, 0x86DD
_ETHER_MPLS, _ETHER_PPPOE, _ETHER_MACSEC = (0x8847, 0x8848), 0x8864, 0x88E5
_PPP_IPV4, _PPP_IPV6, _PPP_MPLS = 0x21, 0x57, (0x0281, 0x0283)
# Van Jacobson's headers, multilink, encryption and compression, the latter two also of one link of a bundle.
_PPP_PACKED = (0x2D, 0x2F, 0x3D, 0x53, 0x55, 0xFB, 0xFD)
_LARGEST_LENGTH = 1500  # an Ethernet type up to this is the length of an 802.3 frame


@jit
def network_layer(data: Any, at: Number, end: Number, link: Number) -> Numbers:
    """(where the IP header begins, version)"""
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
        return by_nibble(data, at, end)
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
    """`at` is after the type."""
    if kind == ETHER_IPV4:
        return at, 4
    at, kind = _without_tags(data, at, end, kind)
    if kind == ETHER_IPV4:
        return at, 4
    if kind == ETHER_IPV6:
        return at, 6
    if kind in _ETHER_MPLS:
        return _mpls(data, at, end)
    return _pppoe(data, at, end, kind)


@jit
def _without_tags(data: Any, at: Number, end: Number, kind: Number) -> Numbers:
    """(after the type, type), the type CUT if the packet ends before it. Any number of VLAN tags may follow, and LLC
    with SNAP if it is a length."""
    while kind in _TAGS:
        if end - at < 4:
            return at, CUT
        kind = big16(data, at + 2)
        at += 4
    if kind <= _LARGEST_LENGTH and end - at >= 8 and big16(data, at) == 0xAAAA and data[at + 2] == 3:
        kind = big16(data, at + 6)
        at += 8
    return at, kind


@jit
def by_nibble(data: Any, at: Number, end: Number) -> Numbers:
    """IP without a type in front of it: its own version field decides."""
    if at >= end:
        return at, CUT
    version = np.int64(data[at] >> 4)
    return at, version if version == 4 or version == 6 else OTHER


@jit
def _mpls(data: Any, at: Number, end: Number) -> Numbers:
    """Labels, then IP or Ethernet, the latter with or without a control word in front (RFC 4448)."""
    at, version = _after_labels(data, at, end)
    if version != OTHER:
        return at, version
    if data[at] >> 4 == 0:
        after, version = _pseudowire(data, at + 4, end)
        if version != OTHER and version != CUT:
            return after, version
    elif data[at] >> 4 == 1:
        return at, OTHER  # control traffic of the pseudowire itself (RFC 4385)
    return _pseudowire(data, at, end)


@jit
def _after_labels(data: Any, at: Number, end: Number) -> Numbers:
    """IP after the last label, by its own version field, or OTHER."""
    last = False
    while not last:
        if end - at < 4:
            return at, CUT
        last = data[at + 2] & 1 != 0
        at += 4
    return by_nibble(data, at, end)


@jit
def _pseudowire(data: Any, at: Number, end: Number) -> Numbers:
    """Ethernet without MPLS labels of its own."""
    if end - at < 14:
        return at, CUT
    at, kind = _without_tags(data, at + 14, end, big16(data, at + 12))
    if kind == ETHER_IPV4:
        return at, 4
    if kind == ETHER_IPV6:
        return at, 6
    return _pppoe(data, at, end, kind)


@jit
def _pppoe(data: Any, at: Number, end: Number, kind: Number) -> Numbers:
    """PPPoE; or the code of a protocol that may contain IP and isn't read. All others contain none, such as ARP."""
    if kind == _ETHER_MACSEC:
        return at, MACSEC
    if kind != _ETHER_PPPOE:
        return at, CUT if kind == CUT else OTHER
    if end - at < 8:
        return at, CUT
    if data[at] != 0x11 or data[at + 1] != 0:
        return at, OTHER  # RFC 2516: version and type are 1, and a session has code 0
    at += 6
    # The first byte of a protocol is even, and is omitted if it is 0 and both ends agree (RFC 1661).
    short = data[at] & 1 != 0
    protocol = np.int64(data[at]) if short else big16(data, at)
    at += 1 if short else 2
    if protocol == _PPP_IPV4:
        return at, 4
    if protocol == _PPP_IPV6:
        return at, 6
    if protocol in _PPP_MPLS:
        return _after_labels(data, at, end)
    return at, PPPOE if protocol in _PPP_PACKED else OTHER
