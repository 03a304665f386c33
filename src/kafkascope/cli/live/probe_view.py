"""Prints the results of a probe: one row per API, what was proven, and what wasn't and why."""

from collections.abc import Iterator
from itertools import groupby

from kafkascope.cli.tables import table
from kafkascope.cli.terminal import heading, paint, prose, title
from kafkascope.client.probe.result import Probe, VersionProof
from kafkascope.formatting import count
from kafkascope.schema.versions import format_versions


def print_probe(probe: Probe, *, full: bool) -> None:
    looks = " or ".join(probe.releases) if probe.releases else "no release of the catalog"
    title(f"Probe of {probe.address}", f"looks like {looks}")
    sent = [(api, proofs) for api, proofs in _by_api(probe) if any(proof.answers for proof in proofs)]
    if sent:
        heading("Called")
        head = ("key", "API", "proven", "answers", "examples", "errors")
        table([_row(api, proofs) for api, proofs in sent], head)
        seen = [(api, ", ".join(_errors(proofs))) for api, proofs in sent if _errors(proofs)]
        if seen:
            heading("Errors seen")
            table(seen)
    left = [(api, proofs) for api, proofs in _by_api(probe) if not any(proof.answers for proof in proofs)]
    if left:
        heading("Not called")
        table([_left_row(api, proofs) for api, proofs in left], ("key", "API", "versions", "why"))
    if full:
        _print_versions(probe)
    wrong = [proof for proof in probe.proofs if proof.state == "failed" or proof.example == "refused"]
    if wrong:
        heading("Wrong")
        for proof in wrong:
            why = proof.why if proof.state == "failed" else f"example refused: {proof.example_why}"
            prose(f"{proof.api} v{proof.version}: {why}", "    ", "  ")
    print()
    _print_sum(probe)


def _by_api(probe: Probe) -> Iterator[tuple[str, list[VersionProof]]]:
    for api, proofs in groupby(probe.proofs, key=lambda proof: proof.api):
        yield api, list(proofs)


def _row(api: str, proofs: list[VersionProof]) -> tuple[str, ...]:
    proven = [proof.version for proof in proofs if proof.state == "proven"]
    some = "" if len(proven) == len(proofs) else f" of {format_versions([proof.version for proof in proofs])}"
    examples = [proof for proof in proofs if proof.example != "not sent"]
    accepted = sum(proof.example == "accepted" for proof in examples)
    return (
        str(proofs[0].key),
        api,
        (format_versions(proven) or "none") + some,
        str(sum(proof.answers for proof in proofs)),
        f"{accepted}/{len(proofs)}" if examples else "not sent",
        str(len(_errors(proofs))),
    )


def _errors(proofs: list[VersionProof]) -> list[str]:
    return sorted({seen.error for proof in proofs for seen in proof.sightings})


def _left_row(api: str, proofs: list[VersionProof]) -> tuple[str, ...]:
    versions = format_versions([proof.version for proof in proofs])
    return str(proofs[0].key), api, versions, proofs[-1].why or proofs[-1].example_why


def _print_versions(probe: Probe) -> None:
    heading("Every version")
    rows = []
    for proof in probe.proofs:
        seen = ", ".join(f"{item.error} in {item.place}" for item in proof.sightings)
        why = proof.why or proof.example_why
        rows.append((f"{proof.api} v{proof.version}", proof.state, str(proof.answers), seen or why))
    table(rows, ("API", "state", "answers", "errors, or why not sent"))


def _print_sum(probe: Probe) -> None:
    answers = sum(proof.answers for proof in probe.proofs)
    proven, failed = probe.count("proven"), probe.count("failed")
    pairs = count(len(probe.proofs), "(API, version) pair")
    print(paint(f"{proven} of {pairs} proven", "bold", "red" if failed else "green"), end="")
    print(f", {failed} failed, {probe.count('not sent')} not sent, {probe.count('unknown')} unknown.")
    exact = "all exact and encoded to the same bytes" if not failed else "not all exact or not all received"
    examples = ", ".join(f"{probe.count_examples(state)} {state}" for state in ("accepted", "refused", "unserved"))
    print(f"{count(answers, 'response')}, {exact}; examples: {examples}.")
    if not probe.wrote:
        print(
            paint(
                "Without --write nothing is created to describe, and no request that changes something is sent.", "dim"
            )
        )
