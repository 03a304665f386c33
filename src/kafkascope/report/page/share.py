"""Renders the section on share groups."""

from kafkascope.formatting import count
from kafkascope.markup import Html, el
from kafkascope.report.charts.figure import empty, table, tiles
from kafkascope.report.charts.heat import heat_figure
from kafkascope.report.charts.members import members_figure
from kafkascope.report.charts.outcomes import outcomes_figure
from kafkascope.report.page.links import Links, share_place
from kafkascope.report.summaries.share import ShareGroups, ShareGroupSummary
from kafkascope.report.words import clock, interval, lasting, number, share

# Groups that are unfolded at first.
_OPEN = 3


def share_section(groups: ShareGroups, links: Links) -> Html:
    return el(
        "section",
        el("h2", "Share groups", id="share-groups"),
        None if groups.shown else empty("No traffic of a share group was recorded."),
        [_group(group, place, links) for place, group in enumerate(groups.shown, 1)],
        _others(groups),
        aria_labelledby="share-groups",
    )


def _group(group: ShareGroupSummary, place: int, links: Links) -> Html:
    name = f"share-{place}"
    return el(
        "details",
        el("summary", el("h3", el("code", group.group_id)), el("span", _line(group), class_="line")),
        tiles(_tiles(group)),
        links.about(share_place(place)),
        outcomes_figure(group, name),
        heat_figure(group, name),
        members_figure(group, name),
        _counts(group) if group.counts else None,
        id=share_place(place),
        class_="group",
        open=place <= _OPEN,
    )


def _others(groups: ShareGroups) -> Html | None:
    """Groups that get only a row of a table."""
    if not groups.others:
        return None
    rows = [
        (
            el("code", group.group_id),
            number(group.acquired),
            number(group.redelivered),
            share(group.redelivered, group.acquired),
            number(group.outcomes.get("lock_expired", 0)),
            number(group.outcomes.get("disconnected", 0)),
            number(group.archived),
        )
        for group in groups.others
    ]
    head = ("share group", "deliveries #", "redelivered #", "share #", "lock expired #", "disconnected #", "archived #")
    lines = table("Share groups with less trouble", head, rows, groups.left_out, "share groups")
    note = "kafkascope report --group G draws any of them."
    return el("section", el("h3", "Other share groups"), el("p", note, class_="note"), lines)


def _line(group: ShareGroupSummary) -> str:
    return (
        f"{count(group.acquired, 'delivery', 'deliveries')}, {number(group.redelivered)} redelivered, "
        f"{interval(group.first_at, group.last_at, 1_000_000)} UTC"
    )


def _tiles(group: ShareGroupSummary) -> list[tuple[str, str, str]]:
    health, outcomes = group.health, group.outcomes
    lag = f"of {count(health.lag_partitions, 'partition')}, {clock(health.lag_at, 60_000_000)}"
    return [
        ("deliveries", number(group.acquired), "records, counted once per delivery"),
        ("redelivered", number(group.redelivered), f"{share(group.redelivered, group.acquired)} of deliveries"),
        ("lock expired", number(outcomes.get("lock_expired", 0)), "held too long"),
        ("archived", number(group.archived), f"at the delivery limit; {number(health.near_limit)} near it"),
        ("acknowledged within", lasting(health.acknowledge_p95_us), "p95 of the worst minute"),
        ("lag", number(health.lag), lag if health.lag is not None else "not described in the recording"),
        ("members", number(health.members), f"{health.state or 'state unknown'}, as last seen"),
        ("stalled", number(len(health.standing_still)), ", ".join(health.standing_still[:3]) or "no partition"),
    ]


def _counts(group: ShareGroupSummary) -> Html:
    rows = [(f"delivery {count}", number(records), share(records, group.acquired)) for count, records in group.counts]
    inside = table(f"Records of {group.group_id} by delivery count", ("delivery count", "records #", "share #"), rows)
    return el("details", el("summary", "Records by delivery count"), inside, class_="data")
