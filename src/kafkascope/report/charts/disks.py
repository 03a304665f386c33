"""Draws log directories: changes of partitions over time, and the bytes on each broker's disk by topic."""

from kafkascope.markup import Html, coordinate, el
from kafkascope.report.charts.axes import WIDTH, TimeScale, ValueScale, short, svg, time_axis, value_axis, value_ticks
from kafkascope.report.charts.figure import figure, legend, table, tip
from kafkascope.report.summaries.disks import DiskBroker, PartitionChanges
from kafkascope.report.words import interval, lasting, number, shorten, size, when

CHANGE_WORDS = {"leader": "leader changed", "isr": "ISR changed", "replicas": "replicas moved"}
_FILLS = {"leader": "c1", "isr": "c0", "replicas": "c2"}
_LEFT, _TOP, _PANEL, _BOTTOM = 58, 26, 150, 36
_NAMES, _BAR, _GAP = 96, 26, 12
_LEAST = 1.0


def changes_figure(changes: PartitionChanges) -> Html:
    buckets = changes.buckets
    scale = TimeScale(buckets.first_at, buckets.last_at, _LEFT)
    highest = max((sum(step) for step in zip(*changes.steps.values(), strict=True)), default=0)
    ticks = value_ticks(highest)
    values = ValueScale(ticks[-1], _TOP, _TOP + _PANEL)
    step = lasting(buckets.step_us)
    parts = [
        *time_axis(scale, _TOP, _TOP + _PANEL),
        *value_axis(values, ticks, _LEFT, WIDTH - 12, f"changes in {step}"),
    ]
    below = [0] * buckets.count
    for kind, numbers in changes.steps.items():
        bars = []
        for index, count in enumerate(numbers):
            if count:
                left, right = scale.x(buckets.start(index)), scale.x(buckets.start(index + 1))
                low, high = values.y(below[index]), values.y(below[index] + count)
                width, tall = max(_LEAST, right - left - 1), max(_LEAST, low - high)
                bars.append(f"M{coordinate(left)} {coordinate(low)}h{coordinate(width)}v{coordinate(-tall)}"
                            f"h-{coordinate(width)}z")  # fmt: skip
                below[index] += count
        parts.append(el("path", d="".join(bars), class_=f"bar {_FILLS[kind]}"))
    for index, count in enumerate(below):
        if count:
            left, right = scale.x(buckets.start(index)), scale.x(buckets.start(index + 1))
            words = [f"{CHANGE_WORDS[kind]} {number(numbers[index])}" for kind, numbers in changes.steps.items()
                     if numbers[index]]  # fmt: skip
            at = interval(buckets.start(index), buckets.start(index + 1))
            area = {"x": left, "y": _TOP, "width": max(_LEAST, right - left), "height": _PANEL}
            parts.append(el("rect", tip(at, *words), class_="hit", **area))
    rows = [
        (when(buckets.start(index), buckets.step_us), *(number(numbers[index]) for numbers in changes.steps.values()))
        for index, count in enumerate(below)
        if count
    ]
    head = ("time (UTC)", *(f"{CHANGE_WORDS[kind]} #" for kind in changes.steps))
    totals = {kind: sum(numbers) for kind, numbers in changes.steps.items()}
    return figure(
        "disks-changes",
        "Changes of partitions, over time",
        f"From the metadata log, in steps of {step}. A change of leader and ISR at once counts as one of the leader.",
        svg(_TOP + _PANEL + _BOTTOM, f"Stacked bars of {number(changes.total)} changes of partitions.", *parts),
        legend((_FILLS[kind], f"{CHANGE_WORDS[kind]} {number(total)}") for kind, total in totals.items()),
        table("Changes in each step; steps without are left out", head, rows),
    )


def bytes_figure(brokers: tuple[DiskBroker, ...]) -> Html:
    topics = list(brokers[0].topics)
    most = max(broker.bytes for broker in brokers)
    ticks = value_ticks(most, 5)
    right = WIDTH - 24
    height = _TOP + len(brokers) * (_BAR + _GAP)

    def x(value: float) -> float:
        return _NAMES + (right - _NAMES) * value / ticks[-1]

    parts: list[Html] = []
    for tick in ticks:
        parts.append(el("path", d=f"M{coordinate(x(tick))} {_TOP - 6}V{coordinate(height)}", class_="grid"))
        parts.append(el("text", short(tick), x=x(tick), y=height + 15, class_="tick", text_anchor="middle"))
    parts.append(el("text", "bytes", x=right, y=height + 30, class_="unit", text_anchor="end"))
    for place, broker in enumerate(brokers):
        top, at = _TOP + place * (_BAR + _GAP), 0
        parts.append(el("text", _name(broker), x=0, y=top + 17, class_="name"))
        others = broker.bytes - sum(broker.topics.values())
        for index, (topic, length) in enumerate([*broker.topics.items(), ("other topics", others)]):
            if length:
                left, width = x(at), max(_LEAST, x(at + length) - x(at) - 1)
                kind = f"c{index}" if index < len(topics) else "c-other"
                words = tip(f"{_name(broker)}: {topic}", size(length))
                parts.append(el("rect", words, x=left, y=top, width=width, height=_BAR, class_=f"{kind} mark"))
                at += length
    rows = [
        (_name(broker), size(broker.bytes), *(size(broker.topics[topic]) for topic in topics)) for broker in brokers
    ]
    entries = [(f"c{index}", shorten(topic, 40)) for index, topic in enumerate(topics)]
    return figure(
        "disks-bytes",
        "What is on the disks",
        "Sizes of the segments that were read, by broker and topic.",
        svg(height + _BOTTOM, f"Bars of bytes for {number(len(brokers))} brokers.", *parts),
        legend([*entries, ("c-other", "other topics")]),
        table("Bytes by broker and topic", ("broker", "all #", *(f"{topic} #" for topic in topics)), rows),
    )


def _name(broker: DiskBroker) -> str:
    return "unknown" if broker.broker is None else f"node {broker.broker}"
