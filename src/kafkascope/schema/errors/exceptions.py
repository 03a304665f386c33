"""Looks up the Java exceptions of error codes: their package, and what their superclasses promise."""

from dataclasses import dataclass
from functools import cache

from kafkascope.schema.files import lines

# What a client does with an exception of each class (KIP-1050), nearest first where several hold.
_PROMISES = {
    "InvalidMetadataException": "The client's metadata is stale. It asks for Metadata first, then sends again.",
    "RefreshRetriableException": "The client looks up leader or coordinator anew, then sends again.",
    "RetriableException": "The same request may succeed later. The client sends it again by itself until its timeout.",
    "ApplicationRecoverableException": "Sending again does not help. The application starts its client anew.",
    "AuthorizationException": "The principal lacks a permission. Nothing helps but an ACL.",
    "AuthenticationException": "The connection was not authenticated. The client gives up rather than try again.",
    "InvalidConfigurationException": "Nothing helps but another configuration, permission or kind of record.",
    "InvalidOffsetException": "A position that is not there. The consumer resets it, or hands the exception on.",
    "OutOfOrderSequenceException": "An idempotent producer and the log disagree about what came before.",
    "ApiException": "The broker's answer, handed to the application as it is.",
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
