"""Collects signs of trouble from the marts about share groups, reading each row once."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kafkascope.health.findings.episodes import MINUTE_US, Episode, Signs
from kafkascope.health.findings.redeliveries import RedeliveryTracker
from kafkascope.health.findings.rules.rule import Limits

Row = Mapping[str, Any]
_ACKNOWLEDGED = frozenset({"accepted", "released", "rejected"})


class SlowAcknowledgements:
    """Records that were acknowledged late in their lock, by group and minute."""

    def __init__(self) -> None:
        self.episodes: dict[tuple[str, int], Episode] = {}

    def add(self, row: Row, records: int, taken_us: int) -> None:
        at = row["outcome_at"]
        key = (row["group_id"], at // MINUTE_US)
        episode = self.episodes.get(key)
        if episode is None:
            episode = self.episodes[key] = Episode(row["group_id"], None, at, at)
        episode.reach(at, at)
        episode.add("slow", records)
        episode.most("slowest_ms", taken_us // 1000)
        episode.most("lock_timeout_ms", row["lock_timeout_ms"])
        episode.name("clients", row["client_id"] or row["member_id"], records)
        episode.prove(at, row["outcome_exchange_id"])


def deliveries(rows: Iterable[Row], signs: Signs, limits: Mapping[str, Limits]) -> SlowAcknowledgements:
    """Returns the slow acknowledgements: the rest of their minute decides if they are too many."""
    slow = SlowAcknowledgements()
    slow_from = limits["share_slow_acknowledgement"]["lock_share"] * 1000
    follow: RedeliveryTracker[Episode] = RedeliveryTracker()
    for row in rows:
        outcome, first, last = row["outcome"], row["first_offset"], row["last_offset"]
        records, delivery_count = last - first + 1, row["delivery_count"] or 0
        place = (row["group_id"], row["topic_id"], row["partition"])
        if delivery_count > 1:
            follow.again(place, first, last, delivery_count, row["client_id"] or row["member_id"] or "somebody unknown")
        if row["archived"]:
            _archived(row, records, signs)
        if outcome == "lock_expired" or outcome == "disconnected":
            episode = _abandoned(row, records, signs)
            follow.ended(place, first, last, delivery_count, episode)
        elif outcome == "moved":
            at = row["outcome_at"] if row["outcome_at"] is not None else row["acquired_at"] or 0
            episode = signs.of("share_moved", row["group_id"], at)
            episode.add("records", records)
            episode.name("reasons", row["rule"], records)
            episode.prove(at, row["outcome_exchange_id"] or row["acquire_exchange_id"])
        elif outcome in _ACKNOWLEDGED and not row["renewals"]:
            acquired_at, at, lock_ms = row["acquired_at"], row["outcome_at"], row["lock_timeout_ms"]
            if acquired_at is not None and at is not None and lock_ms and at - acquired_at >= slow_from * lock_ms:
                slow.add(row, records, at - acquired_at)
    for episode, holder, records in follow.handed_over():
        episode.name("redelivered_to", holder, records)
    return slow


def _topic(row: Row) -> str:
    return f"{row['topic'] or row['topic_id']}-{row['partition']}"


def _archived(row: Row, records: int, signs: Signs) -> None:
    rule = "share_rejected" if row["outcome"] == "rejected" else "share_poison_record"
    at = row["outcome_at"] if row["outcome_at"] is not None else row["acquired_at"] or 0
    group, first, last = row["group_id"], row["first_offset"], row["last_offset"]
    episode = signs.of(rule, f"{group}/{_topic(row)}", at, parent=("share_group", group))
    episode.add("records", records)
    episode.most("delivery_count", row["delivery_count"])
    episode.name("clients", row["client_id"] or row["member_id"], records)
    episode.sample("offsets", first, str(first) if first == last else f"{first}-{last}")
    if rule == "share_poison_record":
        episode.name("last_outcome", row["outcome"], records)
    episode.prove(row["acquired_at"], row["acquire_exchange_id"])
    episode.prove(row["outcome_at"], row["outcome_exchange_id"])


def _abandoned(row: Row, records: int, signs: Signs) -> Episode:
    group = row["group_id"]
    rule = "share_lock_expired" if row["outcome"] == "lock_expired" else "share_member_disconnected"
    at = row["outcome_at"] if row["outcome_at"] is not None else row["acquired_at"] or 0
    since = row["acquired_at"] if row["acquired_at"] is not None else at
    episode = signs.of(rule, f"{group}/{row['member_id']}", since, at, ("share_group", group))
    episode.add("records", records)
    episode.most("lock_timeout_ms", row["lock_timeout_ms"])
    episode.name("clients", row["client_id"], records)
    episode.name("partitions", _topic(row), records)
    if row["rule"] == "refused_late":
        episode.add("refused_late", records)
    episode.prove(since, row["acquire_exchange_id"])
    episode.prove(at, row["outcome_exchange_id"])
    return episode


def minutes(rows: Iterable[Row], slow: SlowAcknowledgements, signs: Signs, limits: Mapping[str, Limits]) -> None:
    lags: defaultdict[str, dict[int, tuple[int, int]]] = defaultdict(dict)
    still: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    storm, slowness = limits["share_redelivery_storm"], limits["share_slow_acknowledgement"]
    for row in rows:
        group, at, acquired = row["group_id"], row["minute_at"], row["acquired"]
        end = at + MINUTE_US
        if acquired and acquired >= storm["acquired"] and row["redelivered"] >= storm["share"] * acquired:
            episode = signs.of("share_redelivery_storm", group, at, end)
            episode.add("acquired", acquired)
            episode.add("redelivered", row["redelivered"])
            episode.most("highest_share", round(row["redelivered"] / acquired, 3))
        if row["near_limit"]:
            signs.of("share_near_limit", group, at, end).add("records", row["near_limit"])
        for place in row["standing_still"] or ():
            still[group, place].append(at // MINUTE_US)
        if row["lag"] is not None:
            # Groups of the same name in several clusters have a row each.
            lag, partitions = lags[group].get(at // MINUTE_US, (0, 0))
            lags[group][at // MINUTE_US] = (lag + row["lag"], partitions + row["lag_partitions"])
            if row["members"] == 0 and row["lag"] > 0 and not acquired:
                signs.of("share_no_members", group, at, end).most("lag", row["lag"])
        late = slow.episodes.get((group, at // MINUTE_US))
        if late:
            late.add("acknowledged", sum(row[name] for name in ("accepted", "released", "rejected")))
    for group, minute in sorted(slow.episodes):
        late, at = slow.episodes[group, minute], minute * MINUTE_US
        acknowledged = late.number("acknowledged")
        enough = 0 < acknowledged >= slowness["acknowledged"]
        if enough and late.number("slow") >= slowness["slow_share"] * acknowledged:
            signs.of("share_slow_acknowledgement", group, at, at + MINUTE_US).join(late)
    for (group, place), numbers in still.items():
        _standing_still(group, place, numbers, lags[group], signs)
    for group, group_lags in lags.items():
        for since, until, growth, lag in growing(group_lags, limits["share_lag_growing"]):
            episode = signs.of("share_lag_growing", group, since * MINUTE_US, until * MINUTE_US)
            episode.add("growth", growth)
            episode.most("lag", lag)


def _standing_still(
    group: str, place: str, numbers: list[int], lags: Mapping[int, tuple[int, int]], signs: Signs
) -> None:
    for run in runs(numbers):
        first, last = run[0], run[-1]
        since, until = first * MINUTE_US, (last + 1) * MINUTE_US
        episode = signs.of("share_standing_still", f"{group}/{place}", since, until, ("share_group", group))
        # Of neighbouring runs the longest counts, not the sum.
        episode.most("minutes", last - first + 1)
        known_lags = [lags[minute] for minute in range(first - 1, last + 1) if minute in lags]
        same = Counter(partitions for _, partitions in known_lags)
        if len(known_lags) > 1 and len(same) == 1:
            episode.most("lag_growth", max(0, known_lags[-1][0] - known_lags[0][0]))


def runs(numbers: Iterable[int]) -> Iterator[list[int]]:
    """Splits minutes into runs of consecutive ones."""
    run: list[int] = []
    for number in sorted(set(numbers)):
        if run and number - run[-1] > 1:
            yield run
            run = []
        run.append(number)
    if run:
        yield run


def growing(lags: Mapping[int, tuple[int, int]], limits: Limits) -> Iterator[tuple[int, int, int, int]]:
    """Yields stretches from a low to a high in which the lag never loses half of its growth: first and last minute,
    growth, and lag at the end. Sums over different partitions can't be compared."""
    minutes_told = sorted(lags)
    index = 0
    while index < len(minutes_told):
        low = high = index
        for later in range(index + 1, len(minutes_told)):
            (lag, partitions), (lowest, same) = lags[minutes_told[later]], lags[minutes_told[low]]
            highest = lags[minutes_told[high]][0]
            if partitions != same or lag - lowest < (highest - lowest) / 2 or lag <= lowest:
                break
            if lag > highest:
                high = later
        growth = lags[minutes_told[high]][0] - lags[minutes_told[low]][0]
        length = minutes_told[high] - minutes_told[low]
        if growth >= limits["records"] and length >= limits["minutes"]:
            yield minutes_told[low], minutes_told[high], growth, lags[minutes_told[high]][0]
        index = max(high, index + 1)
