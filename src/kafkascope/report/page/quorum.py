"""Renders the section on metadata quorums."""

from kafkascope.formatting import count
from kafkascope.markup import Child, Html, el
from kafkascope.report.charts.figure import empty, more, table, tiles
from kafkascope.report.charts.quorum import EVENT_WORDS, event_words, most_behind, quorum_figure, replica_name
from kafkascope.report.page.links import Links, quorum_place
from kafkascope.report.summaries.quorum import Quorums, QuorumSummary
from kafkascope.report.words import lasting, number, when

# Clusters that are unfolded at first.
_OPEN = 3


def quorum_section(quorums: Quorums, links: Links) -> Html:
    why = (
        "No traffic of the metadata quorum was recorded: neither fetches of its log between controllers, nor a response"
    )
    note = "Each cluster has a quorum of its own: nodes of two clusters may have the same number."
    return el(
        "section",
        el("h2", "The quorum", id="quorum"),
        None if quorums.shown else empty(f"{why} to DescribeQuorum."),
        el("p", note, class_="note") if len(quorums.shown) > 1 else None,
        [_quorum(quorum, place, links) for place, quorum in enumerate(quorums.shown, 1)],
        more(quorums.left_out, "clusters with less trouble"),
        aria_labelledby="quorum",
    )


def _quorum(quorum: QuorumSummary, place: int, links: Links) -> Html:
    name: list[Child] = ["Cluster ", el("code", quorum.cluster_id)]
    if quorum.cluster_id is None:
        name = ["Cluster whose id wasn't recorded"]
    elif ":" in quorum.cluster_id:
        name = ["Cluster of ", el("code", quorum.cluster_id), ", whose id wasn't recorded"]
    return el(
        "details",
        el("summary", el("h3", name), el("span", quorum_line(quorum), class_="line")),
        tiles(_tiles(quorum)),
        links.about(quorum_place(place)),
        *_pictures(quorum, f"quorum-{place}"),
        id=quorum_place(place),
        class_="group",
        open=place <= _OPEN,
    )


def quorum_line(quorum: QuorumSummary) -> str:
    """The section's most important facts, for its head."""
    words = []
    if quorum.bands:
        last = quorum.bands[-1]
        led = "led" if quorum.leaderless_ms is None else "last led"
        words.append(f"{led} by node {last.leader_id} in epoch {last.epoch}")
    words.append(count(quorum.elections, "election") if quorum.elections else "no elections")
    without = quorum.longest_without_ms
    words += [f"up to {lasting(1000 * without)} without a leader"] if without else []
    behind = most_behind(quorum)
    if behind is not None and behind.worst_behind_ms:
        words.append(f"{replica_name(behind)} lagged by up to {lasting(1000 * behind.worst_behind_ms)}")
    return ", ".join(words)


def _tiles(quorum: QuorumSummary) -> list[tuple[str, str, str]]:
    last = quorum.bands[-1] if quorum.bands else None
    without = quorum.longest_without_ms
    behind = most_behind(quorum)
    worst = max((known for replica in quorum.replicas if (known := replica.worst_behind_ms) is not None), default=None)
    worst = behind.worst_behind_ms if behind is not None else worst
    votes = ", ".join(
        count(votes, kind.replace("_", "-")) for kind, votes in quorum.votes.items() if kind != "announced"
    )
    return [
        ("leader, last", f"node {last.leader_id}" if last else "unknown", f"epoch {last.epoch}" if last else ""),
        ("elections", number(quorum.elections), votes or "no votes recorded"),
        (
            "longest without leader",
            lasting(1000 * without) if without else "none",
            "" if quorum.leaderless_ms is None else "no leader at the end",
        ),
        (
            "largest lag",
            lasting(1000 * worst) if worst is not None else "unknown",
            replica_name(behind) if behind is not None else "",
        ),
        (
            "replicas",
            number(len(quorum.replicas) + quorum.replicas_left_out),
            count(quorum.observations, "observation"),
        ),
        ("high watermark", number(quorum.high_watermark), "the highest seen"),
    ]


def _pictures(quorum: QuorumSummary, name: str) -> list[Html]:
    rows = [
        (
            when(event.at),
            EVENT_WORDS.get(event.kind, event.kind.replace("_", " ")),
            "" if event.node_id is None else f"node {event.node_id}",
            number(event.epoch),
            "; ".join(event_words(event)[1 if event.epoch is not None else 0 :]),
            el("code", event.exchange_id[:12]) if event.exchange_id else "",
        )
        for event in quorum.events
    ]
    head = ("time (UTC)", "what", "node", "epoch #", "more", "exchange")
    events = table("Events of the leadership", head, rows, quorum.events_left_out, "events")
    nothing = empty("No election, resignation or change of voters was recorded.")
    return [quorum_figure(quorum, name), el("section", el("h4", "Events"), events if rows else nothing)]
