"""The quorum in, its part of the page out."""

from kafkascope.report.chart_quorum import WORDS, event_words, quorum_figure
from kafkascope.report.figure import empty, table, tiles
from kafkascope.report.markup import Html, el
from kafkascope.report.quorum import Quorum
from kafkascope.report.words import lasting, number, when


def quorum_section(quorum: Quorum | None) -> Html:
    why = (
        "No traffic of the metadata quorum was recorded: neither fetches of its log between controllers, nor an answer"
    )
    return el(
        "section",
        el("h2", "The quorum", id="quorum"),
        empty(f"{why} to DescribeQuorum.") if quorum is None else [tiles(_tiles(quorum)), *_pictures(quorum)],
        aria_labelledby="quorum",
    )


def _tiles(quorum: Quorum) -> list[tuple[str, str, str]]:
    last = quorum.bands[-1] if quorum.bands else None
    elections = [event for event in quorum.events if event.kind == "elected"]
    without = max((event.duration_ms or 0 for event in quorum.events), default=0)
    behind = max(quorum.replicas, key=lambda one: one.worst_behind_ms or 0, default=None)
    worst = behind.worst_behind_ms if behind is not None else None
    votes = ", ".join(
        f"{count:,} {kind.replace('_', '-')}s" for kind, count in quorum.votes.items() if kind != "announced"
    )
    return [
        ("leader, last", f"node {last.leader_id}" if last else "unknown", f"epoch {last.epoch}" if last else ""),
        ("elections", number(len(elections)), votes or "no votes recorded"),
        ("longest without leader", lasting(1000 * without) if without else "none", ""),
        (
            "most behind",
            lasting(1000 * worst) if worst is not None else "unknown",
            f"node {behind.replica_id}" if behind is not None and worst else "",
        ),
        (
            "replicas",
            number(len(quorum.replicas) + quorum.replicas_left_out),
            f"{number(quorum.observations)} observations",
        ),
        ("high watermark", number(quorum.high_watermark), "the highest seen"),
    ]


def _pictures(quorum: Quorum) -> list[Html]:
    rows = [
        (
            when(event.at),
            WORDS.get(event.kind, event.kind.replace("_", " ")),
            "" if event.node_id is None else f"node {event.node_id}",
            number(event.epoch),
            "; ".join(event_words(event)[1 if event.epoch is not None else 0 :]),
            el("code", event.exchange_id[:12]) if event.exchange_id else "",
        )
        for event in quorum.events
    ]
    head = ("time (UTC)", "what", "node", "epoch #", "more", "exchange")
    told = table("What happened to the leadership", head, rows, quorum.events_left_out, "events")
    nothing = empty("No election, resignation or change of voters was recorded.")
    return [quorum_figure(quorum), el("section", el("h3", "Events"), told if rows else nothing)]
