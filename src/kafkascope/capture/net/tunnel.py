"""Finds the inner IP header of a tunnel: IP in IP, GRE, ERSPAN, VXLAN, Geneve."""

from typing import Any

from kafkascope.capture.base.numbers import Number, Numbers, big16
from kafkascope.capture.files.link import CUT, ERSPAN, GTP_U, OTHER, VXLAN_GPE, by_ether_type, by_nibble, ethernet
from kafkascope.columnar.compiling.jit import jit

IP_IN_IP, UDP, IPV6_IN_IP, GRE = 4, 17, 41, 47
# VXLAN's port, and the one that Linux used before VXLAN had one (flannel still does).
_VXLAN, _VXLAN_LINUX, _GENEVE = 4789, 8472, 6081
_GTP_U, _VXLAN_GPE = 2152, 4790
_UDP_BYTES, _VXLAN_BYTES, _GENEVE_BYTES, _GTP_BYTES = 8, 8, 8, 8
_TRANSPARENT_ETHERNET = 0x6558
# draft-foschiano-erspan: type II has this version and a sequence number in GRE's header, type I has neither; type III
# has the next version, and a subheader if its last bit is set.
_ERSPAN_2, _ERSPAN_3 = 0x88BE, 0x22EB
_VERSION_2, _VERSION_3 = 1, 2
_ERSPAN_2_BYTES, _ERSPAN_3_BYTES, _SUBHEADER_BYTES = 8, 12, 8
_ETHERNET_FRAME, _IP_FRAME = 0, 2
_CHECKSUM, _KEY, _SEQUENCE = 0x8000, 0x2000, 0x1000


@jit
def inner_ip(data: Any, at: Number, end: Number, protocol: Number) -> Numbers:
    """(where the inner IP header begins, version); OTHER for anything but a known tunnel."""
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
            return _payload(data, after, end, big16(data, at + 2))
        # User traffic of a mobile network: version 1, with a packet of the user inside.
        if port == _GTP_U and end - at >= _GTP_BYTES and data[at] >> 4 == 3 and data[at + 1] == 0xFF:
            return at, GTP_U
        if port == _VXLAN_GPE and end - at >= _VXLAN_BYTES and data[at] & 0x04:
            return at, VXLAN_GPE
    return at, OTHER


@jit
def _gre(data: Any, at: Number, end: Number) -> Numbers:
    """RFC 2784 and 2890. Version 1 is PPTP; source routes are obsolete (RFC 2784 forbids them)."""
    if end - at < 4 or big16(data, at) & 0x4007:
        return at, OTHER
    flags = big16(data, at)
    after = at + 4
    for bit in (_CHECKSUM, _KEY, _SEQUENCE):
        if flags & bit:
            after += 4
    kind = big16(data, at + 2)
    if kind == _ERSPAN_2 and not flags & _SEQUENCE:
        return ethernet(data, after, end)
    if kind in (_ERSPAN_2, _ERSPAN_3):
        return _erspan(data, after, end, kind)
    return _payload(data, after, end, kind)


@jit
def _erspan(data: Any, at: Number, end: Number, kind: Number) -> Numbers:
    """ERSPAN of type II or III."""
    if end - at < (_ERSPAN_2_BYTES if kind == _ERSPAN_2 else _ERSPAN_3_BYTES):
        return at, CUT
    version = data[at] >> 4
    if kind == _ERSPAN_2:
        if version == _VERSION_2:
            return ethernet(data, at + _ERSPAN_2_BYTES, end)
        return at, ERSPAN
    frame = data[at + 10] >> 2 & 0x1F
    after = at + _ERSPAN_3_BYTES + (_SUBHEADER_BYTES if data[at + 11] & 1 else 0)
    if version == _VERSION_3 and frame == _ETHERNET_FRAME:
        return ethernet(data, after, end)
    if version == _VERSION_3 and frame == _IP_FRAME:
        return by_nibble(data, after, end)
    return at, ERSPAN


@jit
def _payload(data: Any, at: Number, end: Number, kind: Number) -> Numbers:
    if at > end:
        return at, OTHER
    if kind == _TRANSPARENT_ETHERNET:
        return ethernet(data, at, end)
    return by_ether_type(data, at, end, kind)
