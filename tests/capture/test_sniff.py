"""What a file is called that is no recording: text where a person could read it, and bytes where not."""

from io import BytesIO

import pytest

from kafkascope.capture.sniff import sniff
from kafkascope.errors import InputError

TEXT, BYTES = "it is text without a line of a broker's request log", "it starts neither as pcap nor as pcapng"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"hello\n", TEXT),
        ("Grüße aus Köln\n".encode(), TEXT),
        ("日本語のテキスト\n".encode() * 999, TEXT),
        ("日本語".encode()[:-1], TEXT),  # cut inside a letter
        ("Grüße aus Köln, von den Bäumen und Flüssen\n".encode("latin-1"), TEXT),
        (b"\033[31mred\033[0m\t\r\n", TEXT),
        (b"x" * 4095 + "日".encode(), TEXT),
        (bytes.fromhex("d4c3b2"), BYTES),
        (bytes.fromhex("d4"), BYTES),
        (bytes.fromhex("e6"), BYTES),
        (bytes.fromhex("ff fe 41 42"), BYTES),
        (bytes(range(128, 256)), BYTES),
        (b"a\0b\0c\0", BYTES),
        (b"text\x7f\x01", BYTES),
    ],
    ids=lambda value: "" if isinstance(value, str) else value[:12].hex(),
)
def test_text_is_told_from_bytes(content: bytes, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        sniff(BytesIO(content))
