"""Formats lines that the summaries of `read` and `ingest` share: incomplete exchanges, and traffic that isn't Kafka."""

from collections.abc import Mapping

from kafkascope.formatting import count, number, size

PROTOCOL_WORDS = {"tls": "TLS", "http": "HTTP", "other": "other protocols", "unknown": "not recognised"}
_STATUSES = {"unanswered": "without a response", "answer_only": "without a request", "undecoded": "that cannot be read"}
# From this share of TLS bytes on, the summary shows what to do about it.
_MUCH_TLS = 0.1


def without_tls(command: str = "read") -> str:
    return (
        "TLS cannot be read from a capture. Record on a plain listener, or give the broker's request log instead"
        f" (logger kafka.request.logger at DEBUG): kafkascope {command} kafka-request.log"
    )


def odd_statuses(statuses: Mapping[str, int]) -> list[str]:
    """At most one line about incomplete exchanges."""
    odd = [f"{number(statuses[status])} {words}" for status, words in _STATUSES.items() if statuses.get(status)]
    return [f"  {', '.join(odd)}"] if odd else []


def other_protocols(protocols: Mapping[str, tuple[int, int]], command: str = "read") -> list[str]:
    """`protocols` are connections and bytes by name. Lists traffic other than Kafka, and what to do about TLS."""
    others = {name: counts for name, counts in protocols.items() if name != "kafka" and counts[1]}
    if not others:
        return []
    parts = [
        f"{count(connections, 'connection')} {PROTOCOL_WORDS.get(name, name)} ({size(length)})"
        for name, (connections, length) in others.items()
    ]
    lines = [f"  not Kafka: {', '.join(parts)}"]
    if "tls" in others and others["tls"][1] >= _MUCH_TLS * sum(length for _, length in protocols.values()):
        lines.append(f"  {without_tls(command)}")
    return lines
