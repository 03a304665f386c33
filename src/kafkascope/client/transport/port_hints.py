"""Guesses from its first bytes which server listens on a port that doesn't speak Kafka, and suggests a fix."""

# An answer's length is at most 100 MiB, so its first byte is 0 to 6: no letter, and no TLS record (20 to 23).
_TEXTS = (
    (b"HTTP/", "an HTTP server"),
    (b"<htm", "an HTTP server"),
    (b"<!DO", "an HTTP server"),
    (b"SSH-", "an SSH server"),
    (b"-ERR", "Redis"),
    (b"+OK", "Redis or a mail server"),
    (b"220 ", "a mail or FTP server"),
    (b"AMQP", "an AMQP broker"),
    (b"RFB ", "a VNC server"),
)


def identify_server(first: bytes) -> str:
    """`first` are the bytes that came where an answer's length should be; the hint never shows them."""
    if len(first) >= 3 and 20 <= first[0] <= 23 and first[1] == 3:
        return "a TLS listener: connect with TLS (--tls)"
    for start, server in _TEXTS:
        if first.startswith(start[: max(3, len(first))]):
            return f"{server}, not Kafka: give the port of a broker"
    if first and first[:4].isascii() and first[:4].decode("ascii", "replace").isprintable():
        return "something that speaks text, not Kafka: give the port of a broker"
    return "something that is not Kafka: give the port of a broker"


def likely_close_reason(greeted: bool, responses: int, *, tls: bool, sasl: bool) -> str:
    """What a closed connection often means: before it reported its versions, and by how many answers came after."""
    if not greeted and not tls:
        return "a TLS listener does that to a client without TLS (--tls); else it is no Kafka, or is shutting down"
    if not greeted:
        return "it is no Kafka, or is shutting down"
    if responses == 0 and not sasl:
        return "a SASL listener does that to a client that does not log in (--sasl-mechanism); else it is shutting down"
    return "the broker is shutting down, or did not like the request; its log says"
