"""What uploads to the explorer make its server and its decoding process hold, measured in processes of their own."""

from collections.abc import Iterator

import cramjam
import pytest

from kafkascope import limits
from kafkascope.codec.frame import encode_frame
from kafkascope.codec.varint import write_zigzag
from kafkascope.errors import InputError
from kafkascope.explorer.decode.worker import DecodeWorker
from tests.hostile.child import peak_of, run
from tests.support.record_data import batch_around

MIB = 1 << 20
# The server is in a thread of the process that is measured; what a client holds there is a piece of 64 KiB.
SERVER = """
from kafkascope.explorer.server.app import create
from kafkascope.explorer.decode.decoder import Decoder
from tests.explorer.serving import connect, head, response, serving
PIECE = b"%41" * 21_845
def upload(port, kind, size):
    path = "/decode.json?form=raw"
    with connect(port, head("POST", path, Content_Type=kind, Transfer_Encoding="chunked")) as connection:
        for at in range(0, size, len(PIECE)):
            piece = PIECE[: size - at] if at else b"data=" + PIECE[5:size]
            connection.sendall(b"%x\\r\\n%b\\r\\n" % (len(piece), piece))
        connection.sendall(b"0\\r\\n\\r\\n")
        answer = response(connection)
        print(answer.status, answer.json["problem"])
decoder = Decoder(seconds=300, upload_seconds=300)
def attempt(kind, size):
    with serving(create(decoder=decoder)) as port:
        upload(port, kind, 10)
        upload(port, kind, size)
    decoder.close()
"""
RAW, FORM = "application/octet-stream", "application/x-www-form-urlencoded"


@pytest.mark.parametrize(("times", "status", "held"), [(1, "200", 2), (8, "413", 1)])
def test_an_upload_takes_what_its_cap_says(times: int, status: str, held: int) -> None:
    """MAX_UPLOAD_BYTES: the largest is there as it came and as it is decoded; one that goes on is refused there."""
    ran = run(SERVER, f"attempt({RAW!r}, {times * limits.MAX_UPLOAD_BYTES})")
    assert ran.output.splitlines()[-1].startswith(status)
    assert limits.MAX_UPLOAD_BYTES < ran.peak < held * limits.MAX_UPLOAD_BYTES + 8 * MIB


@pytest.mark.parametrize(("size", "status"), [(limits.MAX_URLENCODED_BYTES, "422"), (limits.MAX_UPLOAD_BYTES, "413")])
def test_a_url_encoded_form_takes_what_its_cap_says(size: int, status: str) -> None:
    """MAX_URLENCODED_BYTES: the largest while it is unescaped; of one that is longer, what came of it."""
    ran = run(SERVER, f"attempt({FORM!r}, {size})")
    assert ran.output.splitlines()[-1].startswith(status)
    assert ran.peak < size + 8 * limits.MAX_URLENCODED_BYTES


def zigzag(number: int) -> bytes:
    out = bytearray()
    write_zigzag(out, number)
    return bytes(out)


def produce(batches: int, size: int) -> bytes:
    """A request with batches of one record each, of so many zeros, packed to a ten-thousandth of that."""
    record = b"\0\0\0\x01" + zigzag(size) + bytes(size) + b"\0"
    packed = bytes(cramjam.zstd.compress(zigzag(len(record)) + record))
    partitions = [{"index": number, "records": batch_around(packed, "zstd")} for number in range(batches)]
    value = {"acks": 1, "timeoutMs": 1, "topicData": [{"name": "t", "partitionData": partitions}]}
    return encode_frame("ProduceRequest", 9, value, {"correlationId": 1, "clientId": "a"})


@pytest.fixture
def worker() -> Iterator[DecodeWorker]:
    made = DecodeWorker("kafkascope decode", seconds=300)
    yield made
    made.close()


def test_decoding_takes_what_its_cap_says(worker: DecodeWorker) -> None:
    """MAX_DECODE_MEMORY_BYTES: 30 KB that unpack to 900 MB, with a copy of every value."""
    with pytest.raises(InputError, match=rf"more than {limits.MAX_DECODE_MEMORY_BYTES >> 20} MiB of memory"):
        worker.decode(produce(9, 100 * MIB), "", "", "raw", "")
    assert worker._process is not None
    assert limits.MAX_DECODE_MEMORY_BYTES / 2 < peak_of(worker._process.pid) < limits.MAX_DECODE_MEMORY_BYTES + 64 * MIB
    assert "decoded" in worker.decode(produce(1, 10), "", "", "raw", "")
