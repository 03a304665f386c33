"""Recognizes the server on a port that doesn't speak Kafka by its first bytes, and suggests a fix."""

# A response's length is at most 100 MiB, so its first byte is 0 to 6: not a letter, and not a TLS record (20 to 23).
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
    """`first` are the bytes in place of a response's length; the hint never shows them."""
    if len(first) >= 3 and 20 <= first[0] <= 23 and first[1] == 3:
        return "a TLS listener: connect with TLS (--tls)"
    for start, server in _TEXTS:
        if first.startswith(start[: max(3, len(first))]):
            return f"{server}, not Kafka: give the port of a broker"
    if first and first[:4].isascii() and first[:4].decode("ascii", "replace").isprintable():
        return "a server with a text protocol, not Kafka: give the port of a broker"
    return "a server that isn't Kafka: give the port of a broker"


def likely_close_reason(greeted: bool, responses: int, *, tls: bool, sasl: bool) -> str:
    """The usual reason for a closed connection, by whether its versions came and how many responses followed."""
    if not greeted and not tls:
        return "a TLS listener does that to a client without TLS (--tls); otherwise it isn't Kafka, or is shutting down"
    if not greeted:
        return "it isn't Kafka, or is shutting down"
    if responses == 0 and not sasl:
        return (
            "a SASL listener does that to a client that doesn't log in (--sasl-mechanism); otherwise it's shutting down"
        )
    return "the broker is shutting down, or refused the request; see its log"
