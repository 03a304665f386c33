"""Draws a lane per share group member: when it held records, coloured by how their delivery ended."""

from collections.abc import Sequence

from kafkascope.formatting import count
from kafkascope.markup import Child, Html, el, join
from kafkascope.report.charts.axes import WIDTH, TimeScale, svg, time_axis
from kafkascope.report.charts.figure import empty, figure, legend, more, table, tip
from kafkascope.report.charts.outcome_words import OUTCOME_WORDS, fill, tally
from kafkascope.report.summaries.share import Held, MemberLane, ShareGroupSummary
from kafkascope.report.summaries.share_pictures import OUTCOMES
from kafkascope.report.words import clock, lasting, number, share, shorten

_LEFT, _RIGHT = 150, 164
_ROW, _BAR, _TOP, _BOTTOM = 30, 20, 6, 36
# Height of a stripe: eight outcomes fit.
_LEAST = 2.5


def members_figure(group: ShareGroupSummary, name: str) -> Html:
    title = "Who held records, and how their deliveries ended"
    if not group.members:
        return el("section", el("h4", title), empty("No member acquired a record."), class_="chart")
    buckets = group.buckets
    scale = TimeScale(buckets.first_at, buckets.last_at, _LEFT, WIDTH - _RIGHT)
    bottom = float(_TOP + _ROW * len(group.members))
    parts = time_axis(scale, _TOP, bottom)
    for at, lane in enumerate(group.members):
        parts += _lane(group, lane, scale, _TOP + _ROW * at)
    used = [outcome for outcome in OUTCOMES if any(outcome in lane.member.outcomes for lane in group.members)]
    return figure(
        f"{name}-members",
        title,
        f"One lane per member, filled where the member held records, in steps of {lasting(buckets.step_us)}"
        "; the colour shows how their delivery ended. Where deliveries ended differently, the lane is split by share.",
        svg(bottom + _BOTTOM, f"Lanes of {count(len(group.members), 'member')}: {_summary(group)}", *parts),
        legend((fill(outcome), OUTCOME_WORDS[outcome]) for outcome in used),
        join([_table(group, used), more(group.members_left_out, "members with less trouble")]),
    )


def _member_name(lane: MemberLane) -> str:
    return lane.member.client_id or lane.member.member_id or "unknown"


def _lane(group: ShareGroupSummary, lane: MemberLane, scale: TimeScale, top: float) -> list[Html]:
    member = lane.member
    y = top + (_ROW - _BAR) / 2
    whole = tip(f"client {member.client_id}", f"member {member.member_id}", tally(dict(member.outcomes)))
    parts = [
        el("rect", x=scale.left, y=y, width=scale.right - scale.left, height=_BAR, class_="lane"),
        el("text", shorten(_member_name(lane), 22), whole, x=0, y=top + 19, class_="name"),
    ]
    for held in lane.held:
        left = scale.x(group.buckets.start(held.first))
        width = max(2.0, scale.x(group.buckets.start(held.last + 1)) - left)
        tooltip = tip(_member_name(lane), _time(group, held), tally(held.records))
        stripes, below = [], y
        for outcome, height in stripe_heights(held.records).items():
            stripes.append(el("rect", x=left, y=below, width=width, height=height, class_=fill(outcome)))
            below += height
        parts.append(el("g", tooltip, stripes, class_="mark"))
    bad = member.trouble
    words = count(member.records, "record")
    if bad:
        many = member.records >= 1_000
        words = f"{share(bad, member.records) if many else f'{bad} of {member.records}'} not accepted"
    parts.append(el("text", words, x=WIDTH - _RIGHT + 10, y=top + 19, class_="name loud" if bad else "name"))
    return parts


def stripe_heights(records: dict[str, int]) -> dict[str, float]:
    """Heights by share of the records; even the smallest is visible."""
    free = _BAR - _LEAST * len(records)
    whole = sum(records.values())
    return {outcome: _LEAST + free * count / whole for outcome, count in records.items()}


def _time(group: ShareGroupSummary, held: Held) -> str:
    unit = group.buckets.step_us
    return f"{clock(group.buckets.start(held.first), unit)} – {clock(group.buckets.start(held.last + 1), unit)}"


def _summary(group: ShareGroupSummary) -> str:
    return "; ".join(f"{_member_name(lane)} {tally(dict(lane.member.outcomes))}" for lane in group.members[:6])


def _table(group: ShareGroupSummary, used: list[str]) -> Html:
    rows: list[Sequence[Child]] = [
        (
            _member_name(lane),
            el("code", lane.member.member_id),
            number(lane.member.records),
            *(number(lane.member.outcomes[outcome]) for outcome in used),
            number(lane.member.renewals),
            lasting(lane.member.longest_us),
        )
        for lane in group.members
    ]
    head = (
        "client",
        "member id",
        "records #",
        *(f"{OUTCOME_WORDS[name]} #" for name in used),
        "renewals #",
        "held longest #",
    )
    return table(f"Members of {group.group_id}", head, rows)
