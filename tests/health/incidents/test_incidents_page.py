"""docs/findings.md says of every cause what the table says; `python -m tests.health.incidents.test_incidents_page`
writes it."""

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from kafkascope.health.findings.rules.table import RULES
from kafkascope.health.incidents.causes import CAUSES, ORDINARY_ERRORS, Join
from kafkascope.health.incidents.facts import AFTER_US
from kafkascope.health.incidents.incident import WEIGHTS, Incident
from kafkascope.report.incident_words import CAUSE_WORDS
from tests.health.findings_cases import CASES
from tests.health.incidents.diagnosed import diagnosed

PAGE = Path(__file__).parents[3] / "docs" / "findings.md"
IS = {
    "records_archived": "records that nobody processes any more",
    "records_late": "records that were redelivered: late, and done twice",
    "calls_failed": "calls with an error or without a response",
    "seconds_without_leader": "seconds in which the quorum had no leader",
    "seconds_without_owner": "seconds in which tasks had no owner, of all tasks together",
}
# Told instead of the name in the table.
TOLD_AS = {"leader_lost": ("node_down", "node_frozen"), "node_behind": ("node_down", "node_frozen", "node_slow")}


def weights() -> str:
    rows = "\n".join(f"| `{name}` | {IS[name]} | {weight:g} |" for name, weight in WEIGHTS.items())
    return f"| impact | is | weight |\n|---|---|---|\n{rows}\n"


def causes() -> str:
    rows = "\n".join(f"| `{cause.name}` | {cause.says} | {_rules(cause.anchors)} |" for cause in CAUSES)
    return f"| cause | is | shown by |\n|---|---|---|\n{rows}\n"


def consequences() -> str:
    """Those that several causes have are one row."""
    by_join: dict[Join, list[str]] = {}
    for cause in CAUSES:
        for join in cause.joins:
            by_join.setdefault(join, []).append(cause.name)
    rows = "\n".join(
        f"| {join.role} | {_rules(join.rules)} | {_shared(join)} | {_rules(tuple(names))} |"
        for join, names in by_join.items()
    )
    return f"| role | findings | touch the same | as the cause |\n|---|---|---|---|\n{rows}\n"


def _rules(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _shared(join: Join) -> str:
    kinds = " or ".join(kind.replace("share_", "").replace("_", " ") for kind in join.shares) or "time alone suffices"
    only = "; only errors of an outage" if join.errors is not None else ""
    when = "; begun while the cause lasted" if join.after_us != AFTER_US else ""
    cause = f"; only if {' or '.join(sorted(join.cause_apis))} is slow" if join.cause_apis is not None else ""
    apis = "; only calls that wait for replicas" if join.apis is not None else ""
    return f"{kinds}{only}{apis}{cause}{when}"


def simulated() -> str:
    """Of the rows that show each rule, the incidents that have an account of their own, each cause once a rule."""
    made = [(name, incident) for name, (marts, *_) in CASES.items() for incident in diagnosed(marts)[1]]
    own = {(name, incident.cause): incident for name, incident in made if incident.cause not in RULES}
    return "\n".join(paragraph for incident in own.values() for paragraph in paragraphs(incident))


def paragraphs(incident: Incident) -> Iterator[str]:
    yield f"**{incident.title}**\n"
    yield f"{incident.explanation}\n"
    yield f"*{incident.cause}, {incident.confidence}.* {incident.advice}\n"
    yield f"*What would disprove it:* {incident.disproof}\n"


def part(name: str) -> str:
    text = PAGE.read_text(encoding="utf-8")
    start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    return text[text.index(start) + len(start) : text.index(end)]


def test_page_says_what_the_tables_of_weights_and_causes_say() -> None:
    assert part("weights") == weights()
    assert part("causes") == causes()
    assert part("consequences") == consequences()


def test_page_prints_the_simulated_incidents_as_they_come_out() -> None:
    assert part("simulated") == simulated()


def test_page_names_every_column_and_every_ordinary_error() -> None:
    text = PAGE.read_text(encoding="utf-8")
    incidents = text[text.index("## Incidents") : text.index("## Thresholds")]
    for field in fields(Incident):
        assert re.search(rf"^\| .*`{field.name}`.* \|", incidents, re.MULTILINE), field.name
    assert all(reason.isascii() for reason in ORDINARY_ERRORS.values())


def test_every_cause_has_words_for_the_page() -> None:
    names = {name for cause in CAUSES for name in TOLD_AS.get(cause.name, (cause.name,))}
    assert names <= set(CAUSE_WORDS)


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    made_parts = {"weights": weights(), "causes": causes(), "consequences": consequences(), "simulated": simulated()}
    for name, made in made_parts.items():
        text = text.replace(part(name), "", 1) if part(name) else text
        text = text.replace(f"<!-- {name} -->\n", f"<!-- {name} -->\n{made}", 1)
    PAGE.write_text(text, encoding="utf-8")
