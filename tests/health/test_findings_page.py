"""docs/findings.md says of every rule what the table says; `python -m tests.health.test_findings_page` writes it."""

import re
from collections.abc import Iterator
from pathlib import Path

from kafkascope.health.findings.diagnosis import findings_of
from kafkascope.health.findings.episodes import MAX_EVIDENCE, MAX_SUBJECTS, MERGE_US, MINUTE_US
from kafkascope.health.findings.needs import NEEDS
from kafkascope.health.findings.rules.api import PASSING
from kafkascope.health.findings.rules.rule import Rule
from kafkascope.health.findings.rules.table import RULES
from tests.health.findings_cases import CASES

PAGE = Path(__file__).parents[2] / "docs" / "findings.md"
START, END = "<!-- rules -->\n", "<!-- end of rules -->\n"
SECTIONS: dict[str, str | tuple[str, ...]] = {
    "Share groups": "share_",
    "Streams groups": "streams_",
    "The quorum": "quorum_",
    "APIs and clients": ("api_", "client_"),
    "The recording": "recording_",
    "Log directories": ("log_", "partition_", "transaction_", "group_"),
}


def rendered() -> str:
    return "\n".join(line for title, prefix in SECTIONS.items() for line in _section(title, prefix))


def _section(title: str, prefix: str | tuple[str, ...]) -> Iterator[str]:
    yield f"## {title}\n"
    for rule in RULES.values():
        if rule.name.startswith(prefix):
            yield from _rule(rule)


def _rule(rule: Rule) -> Iterator[str]:
    yield f"### {rule.name}\n"
    yield f"{rule.says}\n"
    marts = ", ".join(f"`{mart}`" for mart in rule.marts)
    yield f"*Severity:* {rule.severity}. *Subject:* `{rule.subject_kind}`. *From:* {marts}.\n"
    yield "| threshold | default | | reason |\n|---|---|---|---|"
    for threshold in rule.thresholds:
        yield f"| `{threshold.name}` | {threshold.default:,.12g} | {threshold.unit} | {threshold.reason} |"
    (example,) = [finding for finding in findings_of(CASES[rule.name][0], {}) if finding.rule == rule.name]
    yield f"\n*Example:* {example.summary}"
    advice = re.sub(r"{(\w+)}", lambda placeholder: placeholder[1].upper(), rule.advice)
    yield f"\n*Do:* {advice}\n"


def test_page_says_what_the_table_of_rules_says() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text[text.index(START) + len(START) : text.index(END)] == rendered()


def test_every_rule_has_one_section() -> None:
    assert re.findall(r"^### (\w+)$", rendered(), re.MULTILINE) == list(RULES)


def test_page_names_how_findings_are_made() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert f"{MERGE_US // MINUTE_US} minutes" in text
    assert f"more than {MAX_SUBJECTS} " in text and f"at most {MAX_EVIDENCE}," in text
    assert set(re.findall(r"^\| `(\w+)` \|.*\|$", text[text.index("## What is read") :], re.MULTILINE)) == set(NEEDS)
    passing = text[text.index("## Errors that pass") :]
    assert {error for error in PASSING if f"`{error}`" not in passing} == set()


if __name__ == "__main__":
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    PAGE.write_text(before + START + rendered() + END + rest.partition(END)[2], encoding="utf-8")
