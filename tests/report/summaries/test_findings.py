"""Findings: the worst first, those that are asked for, and where their proofs lie."""

import json
from pathlib import Path
from typing import Any

import pytest

from kafkascope.errors import InputError, UsageError
from kafkascope.lake.home import make_lake
from kafkascope.report.build import build
from kafkascope.report.summaries.findings import MOST_FINDINGS, MOST_PROOFS
from kafkascope.report.summaries.scope import Scope
from tests.report.build import ALL, MINUTE, NOON, NOW, SECOND, delivery, finding, lake_of, put, report_of


def test_the_worst_come_first_and_make_the_verdict(tmp_path: Path) -> None:
    worst = finding("critical", rule="quorum_frequent_elections", subject_kind="quorum", summary="The worst.")
    rows = [finding("info", rule="share_moved"), worst, finding("warning")]
    shown = report_of(tmp_path / "lake", findings=rows).findings
    assert [entry.severity for entry in shown.shown] == ["critical", "warning", "info"]
    verdict = shown.verdict
    assert (verdict.state, verdict.critical, verdict.warning, verdict.info) == ("critical", 1, 1, 1)
    assert verdict.sentence.startswith("The worst.")


def test_without_findings_all_is_healthy(tmp_path: Path) -> None:
    assert report_of(tmp_path / "lake", findings=[]).findings.verdict.state == "healthy"


@pytest.mark.parametrize("marts", [{"findings": []}, {"findings": [], "share_deliveries": [delivery()]}])
def test_a_lake_without_an_exchange_is_not_called_healthy(tmp_path: Path, marts: dict[str, Any]) -> None:
    result = report_of(tmp_path / "lake", exchanges=[], **marts)
    assert (result.findings.verdict.state, result.exchanges) == ("unknown", 0)
    assert "No exchange was recorded, " in result.findings.verdict.sentence


def test_a_time_without_an_exchange_is_not_called_healthy(tmp_path: Path) -> None:
    """A finding of that time is told all the same: of a recording that is all TLS there is no exchange."""
    times = (NOON, NOON + SECOND, None)
    exchanges = [{"exchange_id": f"{at}", "request_at": at, "response_at": NOON + 9 * SECOND} for at in times]
    lake = lake_of(tmp_path / "lake", {"findings": [finding()], "exchanges": exchanges})

    def verdict_of(since: int, until: int | None) -> tuple[str, int]:
        made = build(lake, Scope((), since, until), NOW)
        return made.findings.verdict.state, made.exchanges

    assert verdict_of(NOON, NOON + SECOND) == ("attention", 1)
    assert verdict_of(NOON, None) == ("attention", 3)
    assert verdict_of(NOON + 9 * SECOND, None) == ("healthy", 1)
    assert verdict_of(NOON + 2 * SECOND, NOON + 9 * SECOND) == ("unknown", 0)
    assert verdict_of(NOON + MINUTE, None) == ("unknown", 0)


def test_a_lake_whose_findings_were_not_made_is_not_called_healthy(tmp_path: Path) -> None:
    verdict = report_of(tmp_path / "lake", share_deliveries=[delivery()]).findings.verdict
    assert verdict.state == "unknown" and "kafkascope marts" in verdict.sentence


def test_a_lake_whose_incidents_were_not_made_is_not_judged(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake")
    put(lake, "findings", [finding()])
    put(lake, "captures", [{"ingest_id": "5d1f", "capture_uri": "night.pcap"}])
    verdict = build(lake, ALL, NOW).findings.verdict
    assert verdict.state == "unknown" and "has no incidents yet. Run kafkascope marts LAKE" in verdict.sentence


def test_counts_are_of_all_though_few_are_shown(tmp_path: Path) -> None:
    findings_shown = report_of(tmp_path / "lake", findings=[finding()] * (MOST_FINDINGS + 7)).findings
    assert (len(findings_shown.shown), findings_shown.left_out, findings_shown.verdict.warning) == (
        MOST_FINDINGS,
        7,
        MOST_FINDINGS + 7,
    )


def test_a_proof_names_its_recording(tmp_path: Path) -> None:
    known, gone = "c0511e2113b124aead24e186", "ffffffffffffffffffffffff"
    row = {"exchange_id": known, "request_at": NOON, "api": "ShareFetch", "client_id": "hung", "capture_uri": "a.pcap"}
    lake = lake_of(tmp_path / "lake", {"findings": [finding(evidence=[known, gone])], "exchanges": [row]})
    first, second = build(lake, ALL, NOW).findings.shown[0].evidence
    assert (first.api, first.client_id, first.capture_uri, first.request_at) == ("ShareFetch", "hung", "a.pcap", NOON)
    assert (second.exchange_id, second.capture_uri) == (gone, None)


def test_many_proofs_are_counted(tmp_path: Path) -> None:
    (shown,) = report_of(tmp_path / "lake", findings=[finding(evidence=["ab"] * 12)]).findings.shown
    assert (len(shown.evidence), shown.evidence_left_out) == (MOST_PROOFS, 12 - MOST_PROOFS)


def test_brackets_of_a_group_are_no_pattern() -> None:
    assert Scope(("eu[1]-*",)).chosen(["eu[1]-a", "eu1-a"]) == ["eu[1]-a"]


def test_group_keeps_findings_of_the_group_and_of_no_group(tmp_path: Path) -> None:
    rows = [
        finding(subject="a"),
        finding(subject="a/m-1", subject_kind="share_member"),
        finding(subject="ab/m-1", subject_kind="share_member"),
        finding(subject="a/b/m-1", subject_kind="share_member"),
        finding(subject="node 1", subject_kind="replica"),
    ]
    groups = [delivery(group_id=name) for name in ("a", "ab", "a/b")]
    lake = lake_of(tmp_path / "lake", {"findings": rows, "share_deliveries": groups})
    subjects_of = {"a": ["a", "a/m-1"], "ab": ["ab/m-1"], "a/b": ["a/b/m-1"]}
    for group, subjects in subjects_of.items():
        chosen = build(lake, Scope((group,)), NOW).findings
        assert sorted(finding_shown.subject for finding_shown in chosen.shown) == [*subjects, "node 1"]


def test_incidents_are_those_of_the_findings_in_scope(tmp_path: Path) -> None:
    rows = [finding(subject="a"), finding(subject="b", from_at=NOON + MINUTE, to_at=NOON + MINUTE)]
    groups = [delivery(group_id=name) for name in ("a", "b")]
    lake = lake_of(tmp_path / "lake", {"findings": rows, "share_deliveries": groups})
    for scope, subjects in ((ALL, ["a", "b"]), (Scope(("b",)), ["b"]), (Scope(until=NOON + SECOND), ["a"])):
        built = build(lake, scope, NOW).findings
        assert [incident.subject for incident in built.incidents.shown] == subjects
        assert f"`{subjects[0]}`" in built.verdict.sentence


def test_incidents_that_are_no_json_are_told_all_the_same(tmp_path: Path) -> None:
    broken = {"cause": "member_hung", "severity": "odd", "title": "It hung.", "impact": "[", "from_at": NOON}
    part = {"rule": "share_lock_expired", "subject": "processors", "from_at": NOON}
    broken |= {"consequences": json.dumps([part, {"rule": 1}, 7])}
    built = report_of(tmp_path / "lake", findings=[finding()], incidents=[broken, broken | {"consequences": "{"}])
    (shown,) = built.findings.incidents.shown
    assert (shown.title, shown.severity, shown.impact, shown.confidence) == ("It hung.", "info", {}, "possible")
    assert [part.role for part in shown.consequences] == [""]


def test_between_keeps_what_reaches_into_it(tmp_path: Path) -> None:
    rows = [finding(subject=str(at), from_at=NOON + at * MINUTE, to_at=NOON + (at + 2) * MINUTE) for at in range(6)]
    lake = lake_of(tmp_path / "lake", {"findings": rows})
    chosen = build(lake, Scope(since=NOON + 3 * MINUTE, until=NOON + 4 * MINUTE), NOW).findings
    assert [finding_shown.subject for finding_shown in chosen.shown] == ["1", "2", "3"]


def test_figures_that_are_no_json_are_left_out(tmp_path: Path) -> None:
    (shown,) = report_of(tmp_path / "lake", findings=[finding(figures="{oops")]).findings.shown
    assert shown.figures == {}


def test_patterns_choose_groups_and_an_unknown_one_names_those_there_are(tmp_path: Path) -> None:
    lake = lake_of(
        tmp_path / "lake", {"share_deliveries": [delivery(group_id=name) for name in ("pay-1", "pay-2", "x")]}
    )
    assert [group.group_id for group in build(lake, Scope(("pay-*",)), NOW).share.shown] == ["pay-1", "pay-2"]
    with pytest.raises(UsageError, match="group y; it has pay-1, pay-2, x"):
        build(lake, Scope(("y",)), NOW)


def test_a_group_whose_name_is_a_pattern_can_be_asked_for(tmp_path: Path) -> None:
    lake = lake_of(tmp_path / "lake", {"share_deliveries": [delivery(group_id="a[1]")]})
    assert [group.group_id for group in build(lake, Scope(("a[1]",)), NOW).share.shown] == ["a[1]"]


def test_a_lake_without_marts_says_what_makes_them(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no marts yet; run kafkascope marts"):
        build(make_lake(tmp_path / "lake"), ALL, NOW)
