"""The rules about recordings judge files that follow each other as one: into how many it was cut does not matter."""

import random
from typing import Any

import pytest

from kafkascope.health.findings.diagnosis import Finding, findings_of
from tests.health.findings_rows import MINUTE, T0, row
from tests.health.trouble_rows import Marts

PIECES = 31
PIECE_BYTES = 1_000_000


def cut(seed: int, tls_bytes: int, lost_bytes: int, undecoded: int) -> Marts:
    """TLS, losses and bodies that can't be read are in few of the pieces, as they are when a client comes and goes."""
    rng = random.Random(seed)
    rows: list[dict[str, Any]] = []
    counts = {"tls_bytes": tls_bytes, "lost_bytes": lost_bytes}
    for number in range(PIECES):
        taken = {name: min(left, rng.choice([0, 0, 0, PIECE_BYTES])) for name, left in counts.items()}
        if number == PIECES - 1:
            taken = dict(counts)
        counts = {name: left - taken[name] for name, left in counts.items()}
        begins = T0 + number * MINUTE
        uri = f"night-{number:03}.pcap"
        rows.append(
            row(
                "captures", capture_uri=uri, first_at=begins, last_at=begins + MINUTE, tcp_bytes=PIECE_BYTES, frames=100
            )
            | taken
        )
    bad = [row("quarantine", capture_uri=rng.choice(rows)["capture_uri"]) for _ in range(undecoded)]
    return {"captures": rows, "quarantine": bad}


def joined(marts: Marts) -> Marts:
    """The same recording in one file."""
    counted = ("tls_bytes", "lost_bytes", "tcp_bytes", "frames")
    sums = {name: sum(capture[name] for capture in marts["captures"]) for name in counted}
    whole = row("captures", last_at=T0 + PIECES * MINUTE, **sums)
    return {
        "captures": [whole],
        "quarantine": [quarantined | {"capture_uri": "night.pcap"} for quarantined in marts["quarantine"]],
    }


def judged(marts: Marts) -> list[tuple[str, str]]:
    return sorted((finding.rule, finding.severity) for finding in findings_of(marts, {}))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("figures", "severity"),
    [((4_000_000, 150_000, 20), "info"), ((20_000_000, 2_000_000, 200), "warning"), ((1_000_000, 200, 0), None)],
)
def test_number_and_severity_do_not_depend_on_how_a_recording_was_cut(
    seed: int, figures: tuple[int, int, int], severity: str | None
) -> None:
    marts = cut(seed, *figures)
    rules = ("recording_lost", "recording_tls", "recording_unreadable")
    assert judged(marts) == judged(joined(marts)) == [(rule, severity) for rule in rules if severity]


def test_several_recordings_are_counted_and_the_worst_is_named() -> None:
    rows = [
        row("captures", capture_uri="a.pcap", tls_bytes=100_000),
        row("captures", capture_uri="b.pcap", tls_bytes=900_000, first_at=T0 + MINUTE),
        row("captures", capture_uri="c.pcap"),
    ]
    (finding,) = findings_of({"captures": rows}, {})
    assert (
        finding.summary
        == "33 % of the bytes of `a.pcap` and 2 more are TLS and couldn't be read; `b.pcap` has most of it."
    )
    assert (finding.subject, finding.figures["recordings"]) == ("a.pcap and 2 more", "b.pcap 900,000, a.pcap 100,000")
    assert (finding.from_at, finding.to_at) == (T0, T0 + 60 * MINUTE)


def test_recordings_of_other_times_are_judged_by_themselves() -> None:
    """A day of plaintext does not hide that of the next one all was TLS."""
    later = T0 + 1_440 * MINUTE
    rows = [
        row("captures", capture_uri="monday.pcap", tcp_bytes=50_000_000),
        row("captures", capture_uri="tuesday.pcap", tls_bytes=900_000, first_at=later, last_at=later + MINUTE),
        row("captures", capture_uri="tuesday-2.pcap", first_at=later + 5 * MINUTE, last_at=later + 6 * MINUTE)
        | {"tls_bytes": 300_000},
    ]
    (finding,) = findings_of({"captures": rows}, {})
    assert (finding.subject, finding.severity) == ("tuesday.pcap and 1 more", "warning")
    assert finding.from_at == later and finding.figures["tcp_bytes"] == 2_000_000


def test_calls_of_an_observer_are_no_part_of_what_was_recorded() -> None:
    observed = row("captures", capture_uri="observe://b:9092/1", kind="observe", tcp_bytes=10**9)
    (finding,) = findings_of({"captures": [row("captures", tls_bytes=600_000), observed]}, {})
    assert (finding.subject, finding.severity) == ("night.pcap", "warning")


def unreadable(frames: list[int], kind: str) -> Finding:
    captures = [row("captures", kind=kind, frames=number, tcp_bytes=0) for number in frames]
    (finding,) = findings_of({"captures": captures, "quarantine": [row("quarantine")]}, {})
    return finding


def test_a_file_that_has_grown_has_its_frames_once() -> None:
    """Rows of a capture have what is new, rows of plain frames all of them."""
    assert unreadable([60, 50], "capture").figures["frames"] == 110
    assert unreadable([60, 99], "frames").figures["frames"] == 99


def test_what_has_no_time_is_of_the_time_of_the_others() -> None:
    broken = row("quarantine", capture_uri="broken.pcap", recorded_at=None, kind="broken")
    (finding,) = findings_of({"captures": [row("captures")], "quarantine": [broken]}, {})
    assert (finding.from_at, finding.to_at) == (T0, T0)
