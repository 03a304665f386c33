"""Describes incidents of clients (refused logins, denied access, quotas, versions that an upgrade drops), and incidents
that consist of a single finding."""

from collections import Counter

from kafkascope.formatting import span
from kafkascope.health.findings.rules.table import RULES
from kafkascope.health.findings.words import quoted
from kafkascope.health.incidents.account import Account, command, listed, number
from kafkascope.health.incidents.causes import ORDINARY_ERRORS
from kafkascope.health.incidents.facts import Facts
from kafkascope.health.incidents.incident import Confidence, key_of
from kafkascope.health.incidents.stories import Story

_ALONE_DISPROOF = "The exchanges that prove it, or the log of the broker or client, show another reason."
_TOPICS_EXISTED = "The topics existed at that time: the controller's log shows when they were created."
_DISPROOFS = {
    "share_no_members": "The coordinator's log shows members at that time: then their heartbeats weren't recorded.",
    "streams_missing_source_topics": _TOPICS_EXISTED,
    "streams_missing_internal_topics": _TOPICS_EXISTED,
    "streams_incorrectly_partitioned_topics": "The topics had equal numbers of partitions at that time: the "
    "controller's log shows when partitions were added.",
    "streams_topology_refused": "Later heartbeats of the same client were accepted without a change of its build.",
    "streams_shutdown": "No member's log has an exception of that time: then the shutdown was intended.",
}


def login_refused(story: Story, facts: Facts) -> Account:
    errors, clients = _named(story, facts)
    return _client_account(
        story,
        "login_refused",
        f"The login of {_clients(clients)} was refused: {_errors(errors)}.",
        "The broker doesn't know the user, or the password, token or mechanism is wrong. The client retries until it "
        "is changed.",
        "The broker's log names another reason for the refusal.",
        "Compare user, password and mechanism of the client with the broker's: `sasl.mechanism`, `sasl.jaas.config`. "
        f"SCRAM users: {_command(story, facts, 'kafka-configs.sh', '--describe', '--entity-type', 'users')}.",
    )


def access_denied(story: Story, facts: Facts) -> Account:
    errors, clients = _named(story, facts)
    apis = [finding.subject for finding in story.anchors]
    return _client_account(
        story,
        "access_denied",
        f"{_clients(clients, 'Client')} may not call {listed(apis)}: {_errors(errors)}.",
        "No ACL allows what the client asks for. It doesn't go away by itself.",
        "The ACLs allow it, and the broker's authorizer log shows another principal.",
        f"List the ACLs: {_command(story, facts, 'kafka-acls.sh', '--list')}. The error names the resource that lacks "
        "one.",
    )


def ordinary_errors(story: Story, facts: Facts) -> Account:
    first = story.anchors[0]
    errors, clients = _named(story, facts)
    reasons = dict.fromkeys(ORDINARY_ERRORS[f"{first.subject} {error}"] for error in sorted(errors))
    return _client_account(
        story,
        "ordinary_errors",
        f"{quoted(first.subject)} of {_clients(clients)} returned {_errors(errors)}.",
        f"This is an ordinary response: {'; '.join(reasons)}.",
        _ordinary_disproof(errors),
        "Nothing to do.",
    )


def quota_exceeded(story: Story, _: Facts) -> Account:
    first = story.anchors[0]
    total = sum(number(finding, "throttle_ms") for finding in story.anchors)
    return _client_account(
        story,
        "quota_exceeded",
        f"Client {quoted(first.subject)} was throttled for {span(total)} in all by its quota.",
        "It produces, fetches or requests more than its quota allows, so brokers delay their responses.",
        "No quota is set for the client, for its user or by default: then the delays have another reason.",
        first.advice,
    )


def client_too_old(story: Story, _: Facts) -> Account:
    clients = [finding.subject for finding in story.anchors]
    which = f"{listed(clients)} uses" if len(clients) == 1 else f"{len(clients)} clients use"
    names = "" if len(clients) == 1 else f": {listed(clients, 5)}"
    return _client_account(
        story,
        "client_too_old",
        f"{which} API versions that the newest release no longer serves{names}.",
        "The brokers still serve them, so nothing fails yet. After the upgrade the client fails unless it supports "
        "newer versions.",
        "The client's library supports newer versions too: then it used old ones because its broker is old.",
        story.anchors[0].advice,
    )


def recording_incomplete(story: Story, _: Facts) -> Account:
    return _recording(
        story,
        "recording_incomplete",
        "Calls without a response and unfinished deliveries may only be missing from the recording.",
        "The recorder counted no drops: then the gaps are connections that were cut.",
    )


def recording_unread(story: Story, _: Facts) -> Account:
    return _recording(
        story,
        "recording_unread",
        "The unreadable part isn't checked: the clusters may be in worse health than reported.",
        "These bytes belong to another program: then nothing of Kafka's is missing.",
    )


def _recording(story: Story, cause: str, explanation: str, disproof: str) -> Account:
    first = story.anchors[0]
    return _client_account(
        story,
        cause,
        " ".join(finding.summary for finding in story.anchors),
        explanation,
        disproof,
        first.advice,
    )


def as_the_rule_says(story: Story, _: Facts) -> Account:
    """Takes the sentences of the finding, for causes that add nothing to them and for findings without a cause."""
    first = story.anchors[0]
    rule = RULES.get(first.rule)
    return _client_account(
        story,
        story.cause.name if story.cause else first.rule,
        first.summary,
        rule.says if rule else first.summary,
        _DISPROOFS.get(first.rule, _ALONE_DISPROOF),
        first.advice,
        certain=story.cause is not None,
    )


def _client_account(
    story: Story, cause: str, title: str, explanation: str, disproof: str, advice: str, *, certain: bool = True
) -> Account:
    first = story.anchors[0]
    confidence: Confidence = "certain" if certain else "possible"
    return Account(cause, first.subject_kind, first.subject, title, explanation, confidence, disproof, advice)


def _named(story: Story, facts: Facts) -> tuple[Counter[str], list[str]]:
    errors: Counter[str] = Counter()
    clients: Counter[str] = Counter()
    for finding in story.anchors:
        errors += facts.named[key_of(finding)].errors
        clients += facts.named[key_of(finding)].clients
    return errors, [name for name, _ in sorted(clients.items(), key=lambda item: (-item[1], item[0]))]


def _command(story: Story, facts: Facts, program: str, *arguments: str) -> str:
    """A command for the broker that most of these errors came from."""
    brokers: Counter[str] = Counter()
    for finding in story.anchors:
        brokers += facts.named[key_of(finding)].brokers
    address = max(brokers, key=lambda name: (brokers[name], name), default=facts.brokers.of_cluster(None))
    return command(program, "--bootstrap-server", address, *arguments)


def _ordinary_disproof(errors: Counter[str]) -> str:
    if "GROUP_ID_NOT_FOUND" in errors:
        return "The group existed at that time: then the client asked the wrong cluster."
    return "The client had logged in: then another setting forbids it."


def _clients(names: list[str], noun: str = "client") -> str:
    return f"{noun}{'' if len(names) == 1 else 's'} {listed(names)}"


def _errors(errors: Counter[str]) -> str:
    ordered = sorted(errors.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{quoted(name)} ×{calls:,}" for name, calls in ordered[:3])
