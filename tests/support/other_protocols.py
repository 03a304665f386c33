"""A seed in, the messages of a conversation in another protocol with lengths in front out, as Kafka's would look. The
nearest are ZooKeeper, whose numbers are small, and unframed names in front of everything."""

import struct
from collections.abc import Callable
from random import Random

from tests.support.flows import Message
from tests.support.traffic import REQUEST, RESPONSE, framed

WORDS = ("orders", "order-7", "/brokers/ids/1", "getUser", "ping", "a", "users_by_id", "/config/topics/ledger")


def word(random: Random) -> bytes:
    return random.choice(WORDS).encode()


def jute(text: bytes) -> bytes:
    return struct.pack(">i", len(text)) + text


def utf(text: bytes) -> bytes:
    return struct.pack(">H", len(text)) + text


def zookeeper(random: Random) -> list[Message]:
    """xid and type; create 1, delete 2, exists 3, getData 4, setData 5, getChildren 8, ping 11, getChildren2 12."""
    zxid = random.choice((0, 7, 0x1_0000_0042))
    made: list[Message] = [
        (REQUEST, framed(struct.pack(">iqiq", 0, zxid, 30_000, 0) + jute(bytes(16)) + b"\0")),
        (RESPONSE, framed(struct.pack(">iiq", 0, 30_000, random.getrandbits(63)) + jute(random.randbytes(16)) + b"\0")),
    ]
    for xid in range(1, random.randint(2, 14)):
        kind = random.choice((1, 2, 3, 4, 5, 8, 11, 12, -11))
        stat = struct.pack(">qqqqiiiqiiq", 1, 2, 3, 4, 0, 0, 0, 0, 9, 0, 5)
        if kind in (11, -11):
            made.append((REQUEST, framed(struct.pack(">ii", -2 if kind == 11 else xid, kind))))
            made.append((RESPONSE, framed(struct.pack(">iqi", -2 if kind == 11 else xid, zxid, 0))))
            continue
        tail = {1: jute(word(random)) + struct.pack(">ii", 1, 31) + jute(b"world") + jute(b"anyone") + bytes(4),
                2: struct.pack(">i", -1), 5: jute(word(random)) + struct.pack(">i", -1)}.get(kind, b"\1")  # fmt: skip
        answer = {1: jute(word(random)), 2: b"", 3: stat, 4: jute(word(random)) + stat, 5: stat}.get(
            kind, struct.pack(">i", 1) + jute(word(random))
        )
        made.append((REQUEST, framed(struct.pack(">ii", xid, kind) + jute(word(random)) + tail)))
        made.append((RESPONSE, framed(struct.pack(">iqi", xid, zxid, random.choice((0, -101))) + answer)))
    return made


def thrift(random: Random) -> list[Message]:
    """Framed; the binary protocol, old and strict, or the compact one."""
    made: list[Message] = []
    form = random.randrange(3)
    for number in range(random.randint(1, 8)):
        for way, kind in ((REQUEST, 1), (RESPONSE, 2)):
            name = random.choice((b"ping", b"get", b"send_base"))
            head = (
                jute(name) + struct.pack(">Bi", kind, number)
                if form == 0
                else struct.pack(">I", 0x8001_0000 | kind) + jute(name) + struct.pack(">i", number)
                if form == 1
                else bytes([0x82, kind << 5 | 1, number, len(name)]) + name
            )
            made.append((way, framed(head + b"\x0b\0\1" + jute(word(random)) + b"\x08\0\2\0\0\0\x07\0")))
    return made


def named_commands(random: Random) -> list[Message]:
    """Command, flags, number and a name, as many a Java program writes them: a Kafka header, but for the body."""
    made: list[Message] = []
    for number in range(random.randint(1, 8)):
        head = struct.pack(">hhi", random.randrange(20), random.randrange(3), number)
        # Never nothing after the name: that is a request.
        body = struct.pack(">q", random.getrandbits(62) | 1) + random.randbytes(random.randint(1, 40))
        made.append((REQUEST, framed(head + utf(word(random)) + body)))
        made.append((RESPONSE, framed(head + b"\0" + random.randbytes(random.randint(1, 60)))))
    return made


def echoed_numbers(random: Random) -> list[Message]:
    """The same, and a response begins with the number of its request: a correlation id."""
    made: list[Message] = []
    for way, data in named_commands(random):
        made.append((way, framed(data[8:12] + data[13:]) if way == RESPONSE else data))
    return made


def protobuf(random: Random) -> list[Message]:
    """Pulsar: size of all, size of the command, and fields."""
    made: list[Message] = []
    for number in range(random.randint(1, 8)):
        for way in (REQUEST, RESPONSE):
            command = bytes([8, random.randint(2, 40), 0x12, 6, 10, 4]) + b"name" + bytes([0x18, number])
            made.append((way, framed(struct.pack(">i", len(command)) + command)))
    return made


def rocketmq(random: Random) -> list[Message]:
    head = b'{"code":%d,"language":"JAVA","opaque":%d}' % (random.randint(1, 300), random.randrange(1000))
    frame = framed(struct.pack(">i", len(head)) + head + random.randbytes(random.randint(0, 60)))
    return [(REQUEST, frame), (RESPONSE, frame)] * 3


def postgresql(random: Random) -> list[Message]:
    start = b"\0\3\0\0user\0" + word(random) + b"\0database\0" + word(random) + b"\0application_name\0psql\0\0"
    return [
        (REQUEST, struct.pack(">i", 4 + len(start)) + start), (RESPONSE, b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I"),
        (REQUEST, b"Q\0\0\0\x0dselect 1\0"),
    ]  # fmt: skip


def mysql(random: Random) -> list[Message]:
    greeting = b"\x0a8.0.36\0" + random.randbytes(60)
    query = b"\x03select " + word(random)
    return [(RESPONSE, struct.pack("<I", len(greeting))[:3] + b"\0" + greeting),
            (REQUEST, struct.pack("<I", len(query))[:3] + b"\0" + query)]  # fmt: skip


def amqp(random: Random) -> list[Message]:
    method = struct.pack(">BHI", 1, 0, 12) + struct.pack(">HHhhHH", 10, 31, 0, 0, 0, 60) + b"\xce"
    return [(REQUEST, b"AMQP\0\0\x09\1"), (RESPONSE, method), (REQUEST, method)] * random.randint(1, 4)


def mqtt(random: Random) -> list[Message]:
    body = utf(b"MQTT") + b"\x04\x02\0\x3c" + utf(word(random))
    return [(REQUEST, bytes([0x10, len(body)]) + body), (RESPONSE, b"\x20\2\0\0"), (REQUEST, b"\xc0\0")]


def smb(random: Random) -> list[Message]:
    body = random.choice((b"\xfeSMB", b"\xffSMB")) + struct.pack("<HHI", 64, 0, 0) + random.randbytes(60)
    return [(REQUEST, framed(body)), (RESPONSE, framed(body))] * random.randint(1, 4)


def bgp(random: Random) -> list[Message]:
    keep_alive = b"\xff" * 16 + b"\0\x13\4"
    opened = b"\xff" * 16 + struct.pack(">HBBHHIB", 29, 1, 4, random.getrandbits(16), 180, 1, 0)
    return [(REQUEST, opened), (RESPONSE, opened), (REQUEST, keep_alive), (RESPONSE, keep_alive)]


def dns(random: Random) -> list[Message]:
    made: list[Message] = []
    for _ in range(random.randint(1, 5)):
        query = struct.pack(">HHHHHH", random.getrandbits(16), 0x100, 1, 0, 0, 0) + b"\6broker\5local\0\0\1\0\1"
        made += [(REQUEST, utf(query)), (RESPONSE, utf(query + b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x0a\0\0\1"))]
    return made


def cassandra(random: Random) -> list[Message]:
    made: list[Message] = []
    for number in range(random.randint(1, 6)):
        body = jute(b"select * from " + word(random)) + b"\0\1\0"
        made += [(REQUEST, struct.pack(">BBhBi", 4, 0, number, 7, len(body)) + body),
                 (RESPONSE, struct.pack(">BBhBi", 0x84, 0, number, 8, 4) + bytes(4))]  # fmt: skip
    return made


def mongodb(random: Random) -> list[Message]:
    body = struct.pack("<I", 0) + b"\0" + struct.pack("<i", 30) + b"\x02find\0" + word(random) + b"\0\0"
    return [(way, struct.pack("<iiii", 16 + len(body), random.randrange(999), 0, 2013) + body) for way in (0, 1)]


def redis(random: Random) -> list[Message]:
    return [(REQUEST, b"*2\r\n$3\r\nGET\r\n$%d\r\n%b\r\n" % (len(name := word(random)), name)), (RESPONSE, b"$-1\r\n")]


def grpc(random: Random) -> list[Message]:
    data = b"\0" + framed(b"\x0a" + bytes([6]) + b"orders")
    frame = struct.pack(">I", len(data))[1:] + b"\0\1" + struct.pack(">I", 1) + data
    return [(REQUEST, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame), (RESPONSE, frame)] * random.randint(1, 3)


def tls(random: Random) -> list[Message]:
    return [(way, b"\x16\x03\x03" + utf(bytes([1 + way, 0]) + utf(random.randbytes(90)))) for way in (0, 1)]


def zeros(random: Random) -> list[Message]:
    """Frames of zeros and small numbers decode as requests, and as responses."""
    return [
        (way, framed(bytes(random.choice((0, 0, 0, 0, 1, 3)) for _ in range(random.randint(8, 40)))))
        for _ in range(random.randint(1, 6))
        for way in (REQUEST, RESPONSE)
    ]


def noise(random: Random) -> list[Message]:
    return [(random.randrange(2), random.randbytes(random.randint(1, 900))) for _ in range(random.randint(1, 20))]


def framed_noise(random: Random) -> list[Message]:
    return [
        (random.randrange(2), framed(random.randbytes(random.randint(8, 300)))) for _ in range(random.randint(1, 20))
    ]


PROTOCOLS: tuple[Callable[[Random], list[Message]], ...] = (
    zookeeper, zookeeper, thrift, named_commands, echoed_numbers, protobuf, rocketmq, postgresql, mysql, amqp, mqtt,
    smb, bgp, dns, cassandra, mongodb, redis, grpc, tls, zeros, noise, framed_noise,
)  # fmt: skip
