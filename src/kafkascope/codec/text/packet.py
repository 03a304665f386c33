"""Extracts the TCP payload of one captured packet. Returns None for bytes that aren't a packet."""

from kafkascope.errors import InputError

_TCP = 6
_IPV4, _IPV6 = b"\x08\x00", b"\x86\xdd"
# The places of the next protocol's type and of its header: Ethernet, with a VLAN, Linux cooked (`-i any`) 1 and 2.
_LINKS = ((12, 14), (16, 18), (14, 16), (0, 20))
READ_TAKES_CAPTURES = "`kafkascope read` takes a whole capture (tcpdump -w)"


def _tcp_payload(data: bytes, *, sure: bool) -> bytes | None:
    """`sure` if a tool printed it as a packet: it may be padded, and one that is cut off or not TCP is an error."""
    starts = [0, *(start for at, start in _LINKS if data[at : at + 2] in (_IPV4, _IPV6))]
    for start in [*starts, 4] if sure else starts:  # 4: a BSD loopback, whose header is a number in the host's order
        packet = _ip(data[start:])
        left = len(data) - start
        if packet is None or (packet[2] != left and not sure):
            continue
        protocol, header, total = packet
        segment = data[start + header : start + total]
        if protocol != _TCP:
            break
        if total > left or len(segment) < 20:
            raise InputError(
                f"the packet is cut off: it has {total} bytes, {left} are present; record with tcpdump -s 0"
            )
        inner = (segment[12] >> 4) * 4
        if 20 <= inner <= len(segment):
            return segment[inner:]
    if sure:
        raise InputError(f"this packet isn't TCP; {READ_TAKES_CAPTURES}")
    return None


def _ip(data: bytes) -> tuple[int, int, int] | None:
    """(protocol, size of the header, size of the packet)."""
    if len(data) >= 20 and data[0] >> 4 == 4:
        header, total = (data[0] & 15) * 4, int.from_bytes(data[2:4], "big")
        return (data[9], header, total) if 20 <= header <= total else None
    if len(data) >= 40 and data[0] >> 4 == 6:
        return data[6], 40, 40 + int.from_bytes(data[4:6], "big")
    return None


def one_payload(packets: list[bytes], *, sure: bool) -> bytes:
    """The payload of the one packet that has any; bytes that aren't a packet are returned unchanged."""
    payloads = [_tcp_payload(packet, sure=sure) for packet in packets]
    full = [
        packet if payload is None else payload
        for packet, payload in zip(packets, payloads, strict=True)
        if payload != b""
    ]
    if not full:
        raise InputError(f"this packet carries no data; {READ_TAKES_CAPTURES}")
    if len(full) > 1:
        raise InputError(f"{len(full)} packets carry data; decode reads one, and {READ_TAKES_CAPTURES}")
    return full[0]
