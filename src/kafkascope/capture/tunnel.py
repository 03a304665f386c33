"""What lies behind an IP header that is no TCP in; where the inner IP header begins and of which version out."""

from typing import Any

from kafkascope.capture.link import ERSPAN, OTHER, by_ether_type, ethernet
from kafkascope.capture.numbers import Number, Numbers, big16
from kafkascope.columnar.compiling import jit

IP_IN_IP, UDP, IPV6_IN_IP, GRE = 4, 17, 41, 47
# VXLAN's own port, and the one that Linux took before there was one (flannel still does).
_VXLAN, _VXLAN_LINUX, _GENEVE = 4789, 8472, 6081
_UDP_BYTES, _VXLAN_BYTES, _GENEVE_BYTES = 8, 8, 8
_TRANSPARENT_ETHERNET = 0x6558
_ERSPAN = (0x88BE, 0x22EB)  # types I and II, and III


@jit
def inner(data: Any, at: Number, end: Number, protocol: Number) -> Numbers:
    """(where it begins, version); OTHER for what is no tunnel that we know."""
    if protocol == IP_IN_IP:
        return at, 4
    if protocol == IPV6_IN_IP:
        return at, 6
    if protocol == GRE:
        return _gre(data, at, end)
    if protocol == UDP and end - at >= _UDP_BYTES:
        port = big16(data, at + 2)
        at += _UDP_BYTES
        if port in (_VXLAN, _VXLAN_LINUX) and end - at >= _VXLAN_BYTES and data[at] & 0x08:
            return ethernet(data, at + _VXLAN_BYTES, end)
        if port == _GENEVE and end - at >= _GENEVE_BYTES and data[at] >> 6 == 0:
            after = at + _GENEVE_BYTES + (data[at] & 0x3F) * 4
            return _carried(data, after, end, big16(data, at + 2))
    return at, OTHER


@jit
def _gre(data: Any, at: Number, end: Number) -> Numbers:
    """RFC 2784 and 2890; version 1 is PPTP, and source routes are long gone (RFC 2784 forbids them)."""
    if end - at < 4 or big16(data, at) & 0x4007:
        return at, OTHER
    flags = big16(data, at)
    after = at + 4
    for bit in (0x8000, 0x2000, 0x1000):  # checksum, key, sequence
        if flags & bit:
            after += 4
    return _carried(data, after, end, big16(data, at + 2))


@jit
def _carried(data: Any, at: Number, end: Number, kind: Number) -> Numbers:
    if at > end:
        return at, OTHER
    if kind == _TRANSPARENT_ETHERNET:
        return ethernet(data, at, end)
    if kind in _ERSPAN:
        return at, ERSPAN
    return by_ether_type(data, at, end, kind)
