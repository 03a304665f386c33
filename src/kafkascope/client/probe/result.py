"""Defines the results of a probe, one `VersionProof` per (API, version) that a node serves, and their form as JSON."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# proven: every response was exact and encodes to its bytes. failed: one wasn't, or none came.
# not sent: it changes something, or there are no sensible arguments. unknown: newer than the catalog.
_STATES = ("proven", "failed", "not sent", "unknown")


@dataclass(frozen=True, slots=True)
class ObservedError:
    """An error code in a response; `place` is its field in the catalog (`Topics.Partitions.ErrorCode`)."""

    place: str
    error: str
    code: int


@dataclass(frozen=True, slots=True)
class VersionProof:
    """`why` is the problem, or the reason why nothing was sent; `example_why` is the same for the catalog's example."""

    api: str
    key: int
    version: int
    kind: str  # reads, writes, joins, internal
    state: str
    answers: int
    sightings: tuple[ObservedError, ...] = ()
    why: str = ""
    # accepted: a response other than INVALID_REQUEST and UNSUPPORTED_VERSION; else refused. unserved: the node
    # advertises the version but never serves it.
    example: str = "not sent"
    example_why: str = ""


@dataclass(frozen=True, slots=True)
class Probe:
    """`releases` are the releases of the catalog with these versions; none if no release fits."""

    address: str
    releases: tuple[str, ...]
    wrote: bool
    proofs: tuple[VersionProof, ...]

    def count(self, state: str) -> int:
        return sum(proof.state == state for proof in self.proofs)

    def count_examples(self, example: str) -> int:
        return sum(proof.example == example for proof in self.proofs)

    @property
    def ok(self) -> bool:
        """Whether nothing failed and no example was refused."""
        return not any(proof.state == "failed" or proof.example == "refused" for proof in self.proofs)


def as_json(probe: Probe) -> dict[str, Any]:
    """The result as JSON, as in `probe.schema.json`."""
    return {
        "address": probe.address,
        "releases": list(probe.releases),
        "wrote": probe.wrote,
        "counts": {
            "offered": len(probe.proofs),
            **{_camel(state): probe.count(state) for state in _STATES},
            "answers": sum(proof.answers for proof in probe.proofs),
            "examplesAccepted": probe.count_examples("accepted"),
            "examplesRefused": probe.count_examples("refused"),
            "examplesUnserved": probe.count_examples("unserved"),
        },
        "proofs": [_proof(proof) for proof in probe.proofs],
    }


def _camel(state: str) -> str:
    first, *others = state.split(" ")
    return first + "".join(word.capitalize() for word in others)


def _proof(proof: VersionProof) -> dict[str, Any]:
    return {
        "api": proof.api,
        "key": proof.key,
        "version": proof.version,
        "kind": proof.kind,
        "state": proof.state,
        "answers": proof.answers,
        "why": proof.why or None,
        "errors": [{"place": seen.place, "error": seen.error, "code": seen.code} for seen in proof.sightings],
        "example": proof.example,
        "exampleWhy": proof.example_why or None,
    }


def unique_errors(errors: Iterable[ObservedError]) -> tuple[ObservedError, ...]:
    return tuple(sorted(set(errors), key=lambda seen: (seen.place, seen.code)))


def schema_text() -> str:
    """The JSON Schema of `as_json`."""
    return Path(__file__).with_name("probe.schema.json").read_text(encoding="utf-8")
