"""Looks up the Java exceptions of error codes: their package, and what their superclasses promise."""

from dataclasses import dataclass
from functools import cache

from kafkascope.schema.files import lines

# What a client does with an exception of each class (KIP-1050), nearest first if several apply.
_PROMISES = {
    "InvalidMetadataException": "The client's metadata is stale. It requests Metadata first, then retries.",
    "RefreshRetriableException": "The client looks up the leader or coordinator again, then retries.",
    "RetriableException": "The same request may succeed later. The client retries by itself until its timeout.",
    "ApplicationRecoverableException": "Retrying doesn't help. The application recreates its client.",
    "AuthorizationException": "The principal lacks a permission. Only an ACL helps.",
    "AuthenticationException": "The connection wasn't authenticated. The client doesn't retry.",
    "InvalidConfigurationException": "Only a different configuration, permission or kind of record helps.",
    "InvalidOffsetException": "A position that doesn't exist. The consumer resets it, or passes on the exception.",
    "OutOfOrderSequenceException": "An idempotent producer and the log disagree about earlier records.",
    "ApiException": "The broker's error, passed to the application unchanged.",
}


@dataclass(frozen=True, slots=True)
class JavaException:
    """`parents` are its superclasses below KafkaException, nearest first."""

    name: str
    package: str
    parents: tuple[str, ...]

    @property
    def full_name(self) -> str:
        return f"{self.package}.{self.name}"

    @property
    def promise(self) -> str:
        return next(_PROMISES[parent] for parent in self.parents if parent in _PROMISES)


@cache
def java_exceptions() -> dict[str, JavaException]:
    rows = (line.split(" ") for line in lines("exceptions.txt"))
    return {name: JavaException(name, package, tuple(parents)) for name, package, *parents in rows}
