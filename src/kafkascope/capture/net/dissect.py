"""The kernel that finds the TCP segments in packets, through link layer, IP and tunnels. It reads no header before it
has checked that the packet holds it.

Fragments are set aside as rows of their own; packets that can't be read are counted by reason."""

from enum import IntEnum
from typing import Any

import numpy as np

from kafkascope.capture.base.checked import prefetch
from kafkascope.capture.base.flow import ACK
from kafkascope.capture.base.numbers import Number, Numbers, big16, big32, big64
from kafkascope.capture.files.link import CUT, OTHER, UNKNOWN_LINK, network_layer
from kafkascope.capture.net.flow_table import FULL, flow_number
from kafkascope.capture.net.tunnel import GRE, IP_IN_IP, IPV6_IN_IP, UDP, inner_ip
from kafkascope.columnar.compiling.jit import jit
from kafkascope.limits import MAX_PACKET_BYTES, MAX_TUNNELS

TCP = 6
_HOP_BY_HOP, _FRAGMENT, _AUTHENTICATION = 0, 44, 51
# Also routing, destination options, mobility, host identity, shim6.
_EXTENSIONS = (_HOP_BY_HOP, 43, _AUTHENTICATION, 60, 135, 139, 140)
_JUMBO_OPTION = 0xC204  # RFC 2675: option type and length
# Longer than any packet on the wire: a jumbo payload may claim 4 GB, which the columns can't hold.
LONGEST_WIRE = 16 * MAX_PACKET_BYTES
_MAPPED = np.int64(0xFFFF) << 32  # IPv4 in IPv6: ::ffff:a.b.c.d

# Headers are far apart in memory: the header of the packet this many rows on is prefetched while one is read.
_AHEAD = 8


class DissectStop(IntEnum):
    """Why the kernel stopped."""

    DONE = 0
    FLOWS_FULL = 1
    FRAGMENTS_FULL = 2


class SkipReason(IntEnum):
    """Why a packet gave no segment: the rows of `bad`, each (packets, bytes, first packet, first link type). For
    segments that were recorded in part only the packets are counted."""

    CUT_HEADERS = 0
    MALFORMED = 1
    LINK_NOT_KNOWN = 2
    TOO_DEEP = 3
    IN_PPPOE = 4
    IN_ERSPAN = 5
    IN_MACSEC = 6
    IN_GTP_U = 7
    IN_VXLAN_GPE = 8
    IN_PART = 9


class Fragment(IntEnum):
    """Columns of the fragment rows."""

    ROW = 0
    VERSION = 1
    LEVEL = 2
    IDENTIFICATION = 3
    PROTOCOL = 4
    FROM_HIGH = 5
    FROM_LOW = 6
    TO_HIGH = 7
    TO_LOW = 8
    OFFSET = 9
    MORE = 10
    START = 11
    END = 12
    LENGTH = 13


@jit
def _leads_to_tcp(protocol: Number) -> bool:
    return protocol in (TCP, UDP, GRE, IP_IN_IP, IPV6_IN_IP) or _is_extension(protocol)


@jit
def _is_extension(protocol: Number) -> bool:
    return protocol in _EXTENSIONS


@jit
def dissect(
    data: Any, first: Number, starts: Any, captured: Any, original: Any, times: Any, links: Any, numbers: Any,
    levels: Any, slots: Any, keys: Any, known: Any, seed: Number,
    flow: Any, direction: Any, sequence: Any, flags: Any, start: Any, length: Any, wire_length: Any, time_ns: Any,
    packet: Any, acknowledgement: Any, count: Number, fragments: Any, bad: Any,
) -> Numbers:  # fmt: skip
    """(packet to go on with, segments, fragments, why it stopped)"""
    pieces = 0
    for row in range(first, len(starts)):
        if row + _AHEAD < len(starts):
            prefetch(data, starts[row + _AHEAD])
            prefetch(data, starts[row + _AHEAD] + 64)
        at = starts[row]
        end = at + captured[row]
        wire = max(end, at + original[row])
        level = np.int64(levels[row])
        outer = level
        at, version = network_layer(data, at, end, links[row])
        reason = -1
        while True:
            # Each turn reads one IP header and what it carries; a tunnel makes another turn.
            if version != 4 and version != 6:
                if version == CUT:
                    reason = SkipReason.CUT_HEADERS
                elif version == UNKNOWN_LINK:
                    reason = SkipReason.LINK_NOT_KNOWN
                elif version < UNKNOWN_LINK:
                    # In the order of `link`.
                    reason = SkipReason.TOO_DEEP + UNKNOWN_LINK - version
                break
            fragment = False
            offset = np.int64(0)
            more = np.int64(0)
            identification = np.int64(0)
            if version == 4:
                if end - at < 20:
                    reason = SkipReason.CUT_HEADERS
                    break
                header = np.int64(data[at] & 15) * 4
                total = big16(data, at + 2)
                if data[at] >> 4 != 4 or header < 20 or 0 < total < header:
                    reason = SkipReason.MALFORMED
                    break
                # Offload leaves 0: the packet is as long as the frame. Bytes after the length are padding.
                if total:
                    wire = at + total
                    end = min(end, wire)
                if end - at < header:
                    reason = SkipReason.CUT_HEADERS
                    break
                place = big16(data, at + 6)
                protocol = np.int64(data[at + 9])
                from_high = np.int64(0)
                from_low = _MAPPED | big32(data, at + 12)
                to_high = np.int64(0)
                to_low = _MAPPED | big32(data, at + 16)
                if place & 0x3FFF:
                    fragment = True
                    offset = (place & 0x1FFF) * 8
                    more = place & 0x2000
                    identification = big16(data, at + 4)
                at += header
            else:
                if end - at < 40:
                    reason = SkipReason.CUT_HEADERS
                    break
                if data[at] >> 4 != 6:
                    reason = SkipReason.MALFORMED
                    break
                total = big16(data, at + 4)
                protocol = np.int64(data[at + 6])
                from_high = big64(data, at + 8)
                from_low = big64(data, at + 16)
                to_high = big64(data, at + 24)
                to_low = big64(data, at + 32)
                at += 40
                if total:
                    wire = at + total
                    end = min(end, wire)
                elif protocol == _HOP_BY_HOP and end - at >= 8 and big16(data, at + 2) == _JUMBO_OPTION:
                    wire = at + big32(data, at + 4)
                    end = min(end, wire)
            while not fragment and (_is_extension(protocol) or (version == 6 and protocol == _FRAGMENT)):
                if end - at < 8:
                    reason = SkipReason.CUT_HEADERS
                    break
                before = protocol
                protocol = np.int64(data[at])
                if before == _FRAGMENT:
                    place = big16(data, at + 2)
                    identification = big32(data, at + 4)
                    at += 8
                    # Offset 0 and nothing to follow is a whole packet (RFC 6946).
                    if place & 0xFFF9:
                        fragment = True
                        offset = place & 0xFFF8
                        more = place & 1
                elif before == _AUTHENTICATION:
                    at += (np.int64(data[at + 1]) + 2) * 4
                else:
                    at += (np.int64(data[at + 1]) + 1) * 8
                if at > end:
                    reason = SkipReason.CUT_HEADERS
                    break
            if reason >= 0:
                break
            if fragment:
                if not _leads_to_tcp(protocol):
                    break
                if pieces == len(fragments):
                    return row, count, pieces, DissectStop.FRAGMENTS_FULL
                fragments[pieces, Fragment.ROW] = row
                fragments[pieces, Fragment.VERSION] = version
                fragments[pieces, Fragment.LEVEL] = level
                fragments[pieces, Fragment.IDENTIFICATION] = identification
                fragments[pieces, Fragment.PROTOCOL] = protocol
                fragments[pieces, Fragment.FROM_HIGH] = from_high
                fragments[pieces, Fragment.FROM_LOW] = from_low
                fragments[pieces, Fragment.TO_HIGH] = to_high
                fragments[pieces, Fragment.TO_LOW] = to_low
                fragments[pieces, Fragment.OFFSET] = offset
                fragments[pieces, Fragment.MORE] = more
                fragments[pieces, Fragment.START] = at
                fragments[pieces, Fragment.END] = end
                fragments[pieces, Fragment.LENGTH] = wire - at
                pieces += 1
                break
            if protocol != TCP:
                at, version = inner_ip(data, at, end, protocol)
                level += 1
                if version != OTHER and level > MAX_TUNNELS:
                    reason = SkipReason.TOO_DEEP
                    break
                continue
            if wire - at < 20 or wire - at > LONGEST_WIRE:
                reason = SkipReason.MALFORMED
                break
            if end - at < 20:
                reason = SkipReason.CUT_HEADERS
                break
            header = np.int64(data[at + 12] >> 4) * 4
            if header < 20 or at + header > wire:
                reason = SkipReason.MALFORMED
                break
            from_port = big16(data, at)
            to_port = big16(data, at + 2)
            # Halves of addresses compare unsigned: flipping the sign bit of signed numbers does that.
            flip = np.int64(-0x8000_0000_0000_0000)
            back: Any = False
            if from_high != to_high:
                back = from_high ^ flip > to_high ^ flip
            elif from_low != to_low:
                back = from_low ^ flip > to_low ^ flip
            else:
                back = from_port > to_port
            if back:
                number = flow_number(
                    slots, keys, known, seed, to_high, to_low, from_high, from_low, to_port << 16 | from_port
                )
            else:
                number = flow_number(
                    slots, keys, known, seed, from_high, from_low, to_high, to_low, from_port << 16 | to_port
                )
            if number == FULL:
                return row, count, pieces, DissectStop.FLOWS_FULL
            payload = at + header
            flow[count] = number
            direction[count] = back
            sequence[count] = big32(data, at + 4)
            flags[count] = data[at + 13]
            start[count] = min(payload, end)
            length[count] = max(0, end - payload)
            wire_length[count] = wire - payload
            if length[count] != wire_length[count]:
                bad[SkipReason.IN_PART, 0] += 1
            time_ns[count] = times[row]
            packet[count] = numbers[row]
            acknowledgement[count] = big32(data, at + 8) if data[at + 13] & ACK else np.int64(-1)
            count += 1
            break
        # What only looks like a tunnel isn't a broken packet.
        if reason >= 0 and (level == outer or reason >= SkipReason.TOO_DEEP):
            if bad[reason, 0] == 0:
                bad[reason, 2] = row
                bad[reason, 3] = links[row]
            bad[reason, 0] += 1
            bad[reason, 1] += captured[row]
    return len(starts), count, pieces, DissectStop.DONE
