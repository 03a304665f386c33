"""Url-encoded forms: read as Python reads them, in memory of a few times their size."""

import tracemalloc
from random import Random
from urllib.parse import parse_qsl

import pytest

from kafkascope.errors import InputError
from kafkascope.explorer.server import form_data
from kafkascope.explorer.server.form_data import MAX_FIELDS, parse_form
from kafkascope.limits import MAX_URLENCODED_BYTES

KIND = "application/x-www-form-urlencoded"
CASES, SEED = 2_000, 7
TEXTS = "% %4 %41 %e4 %C3%A4 a = & + _ \n \r\n %0A %3D %% =\n %\n ä %g1 \t\n".split(" ")


def as_python_reads(body: bytes) -> dict[str, bytes]:
    fields: dict[str, bytes] = {}
    for name, value in parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS):
        fields.setdefault(name, value.encode())
    return fields


@pytest.mark.parametrize("portion", [3, 4, 4_096])
def test_a_form_is_read_as_python_reads_it(portion: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(form_data, "_PORTION_BYTES", portion)
    random = Random(SEED)
    for number in range(CASES):
        body = "".join(random.choice(TEXTS) for _ in range(random.randrange(12))).encode()
        fields = {name: part.content for name, part in parse_form(KIND, body).items()}
        assert fields == as_python_reads(body), f"case {number} of seed {SEED}: {body!r}"


@pytest.mark.parametrize("escape", [b"%41", b"%", b"%zz", b"+", b"&"])
def test_the_largest_form_takes_a_few_times_its_size(escape: bytes) -> None:
    body = bytearray(b"data=" + escape * ((MAX_URLENCODED_BYTES - 5) // len(escape)))
    tracemalloc.start()
    try:
        try:
            parse_form(KIND, body)
        except InputError:
            assert escape == b"&"
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * MAX_URLENCODED_BYTES
