"""Groups signs of trouble into episodes: what one rule has against one subject over one interval.

Signs of the same rule, subject and minute are merged, and so are episodes that are close together. If many subjects of
one parent are in trouble at once, they become one episode of the parent. The order of the signs doesn't matter, and
memory doesn't grow with their number: an episode holds counts, maxima, names and a few samples of evidence.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator

from kafkascope.health.findings.words import tally

MINUTE_US = 60_000_000
# Two episodes closer than this are one incident to whoever is on call.
MERGE_US = 5 * MINUTE_US
# More subjects of one group than this, in one interval, become one episode.
MAX_SUBJECTS = 10
MAX_EVIDENCE = 20

_Parent = tuple[str, str]  # kind and subject
_Number = int | float


class _FirstByKey:
    """Keeps the first few distinct values of many, by their key."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: set[tuple[int, str]] = set()

    def add(self, key: int, text: str) -> None:
        self._kept.add((key, text))
        if len(self._kept) > 8 * MAX_EVIDENCE:
            self._kept = set(sorted(self._kept)[:MAX_EVIDENCE])

    def join(self, other: "_FirstByKey") -> None:
        for key, text in other._kept:
            self.add(key, text)

    def texts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(text for _, text in sorted(self._kept)))[:MAX_EVIDENCE]


class Episode:
    """`number` holds sums (`add`) and maxima (`most`) by name, `named` counts by name; what was never added is 0 or
    empty. `subjects` is above 1 if the episode covers several subjects of its parent."""

    __slots__ = (
        "_evidence",
        "_most",
        "_samples",
        "_sums",
        "from_at",
        "named",
        "parent",
        "subject",
        "subjects",
        "to_at",
    )

    def __init__(self, subject: str, parent: _Parent | None, from_at: int, to_at: int) -> None:
        self.subject, self.parent, self.subjects = subject, parent, 1
        self.from_at, self.to_at = from_at, to_at
        self.named: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._sums: dict[str, _Number] = {}
        self._most: dict[str, _Number] = {}
        self._samples: dict[str, _FirstByKey] = {}
        self._evidence = _FirstByKey()

    def reach(self, from_at: int, to_at: int) -> None:
        self.from_at, self.to_at = min(self.from_at, from_at), max(self.to_at, to_at)

    def add(self, name: str, number: _Number = 1) -> None:
        self._sums[name] = self._sums.get(name, 0) + number

    def most(self, name: str, number: _Number | None) -> None:
        if number is not None:
            self._most[name] = max(self._most.get(name, number), number)

    def name(self, key: str, name: str | None, number: int = 1) -> None:
        if name is not None:
            self.named[key][name] += number

    def sample(self, name: str, key: int, text: str) -> None:
        few = self._samples.get(name)
        if few is None:
            few = self._samples[name] = _FirstByKey()
        few.add(key, text)

    def prove(self, at: int | None, exchange_id: str | None) -> None:
        if exchange_id is not None:
            self._evidence.add(at or 0, exchange_id)

    def number(self, name: str) -> _Number:
        return self._sums.get(name, self._most.get(name, 0))

    def samples(self, name: str) -> tuple[str, ...]:
        return self._samples[name].texts() if name in self._samples else ()

    @property
    def group(self) -> str:
        return self.parent[1] if self.parent else self.subject

    @property
    def length_ms(self) -> float:
        return (self.to_at - self.from_at) / 1000

    @property
    def evidence(self) -> tuple[str, ...]:
        return self._evidence.texts()

    def figures(self) -> dict[str, int | float | str]:
        figures: dict[str, int | float | str] = {}
        if self.subjects > 1:
            figures["subjects"] = self.subjects
        for numbers in (self._sums, self._most):
            figures.update({name: numbers[name] for name in sorted(numbers)})
        figures.update({name: tally(self.named[name], 10) for name in sorted(self.named) if self.named[name]})
        figures.update({name: ", ".join(self.samples(name)) for name in sorted(self._samples)})
        return figures

    def join(self, other: "Episode") -> None:
        self.reach(other.from_at, other.to_at)
        for name, number in other._sums.items():
            self.add(name, number)
        for name, number in other._most.items():
            self.most(name, number)
        for key, counts in other.named.items():
            self.named[key].update(counts)
        for key, few in other._samples.items():
            self._samples.setdefault(key, _FirstByKey()).join(few)
        self._evidence.join(other._evidence)


class Signs:
    def __init__(self) -> None:
        self._by_rule: defaultdict[tuple[str, str], dict[int, Episode]] = defaultdict(dict)

    def of(
        self, rule: str, subject: str, from_at: int, to_at: int | None = None, parent: _Parent | None = None
    ) -> Episode:
        """Returns the episode of this rule, subject and minute, to add to."""
        minutes, minute = self._by_rule[rule, subject], from_at // MINUTE_US
        end = from_at if to_at is None else max(from_at, to_at)
        if minute in minutes:
            minutes[minute].reach(from_at, end)
        else:
            minutes[minute] = Episode(subject, parent, from_at, end)
        return minutes[minute]

    def episodes(self, rule: str, gap_us: int) -> Iterator[Episode]:
        """Yields each subject's episodes in time order, those close together merged. Call it once per rule."""
        for name, subject in sorted(key for key in self._by_rule if key[0] == rule):
            yield from merge_episodes(self._by_rule[name, subject].values(), gap_us)


def merge_episodes(episodes: Iterable[Episode], gap_us: int) -> list[Episode]:
    """Merges neighbouring episodes of one subject."""
    merged: list[Episode] = []
    for episode in sorted(episodes, key=lambda episode: (episode.from_at, episode.to_at)):
        if merged and episode.from_at - merged[-1].to_at <= gap_us:
            merged[-1].join(episode)
        else:
            merged.append(episode)
    return merged


def gather_episodes(episodes: Iterable[Episode], fires: Callable[[Episode], bool], gap_us: int) -> Iterator[Episode]:
    """Yields the episodes that fire; a crowd of one parent's subjects becomes one episode."""
    by_parent: defaultdict[_Parent, list[Episode]] = defaultdict(list)
    for episode in episodes:
        if not fires(episode):
            continue
        if episode.parent is None:
            yield episode
        else:
            by_parent[episode.parent].append(episode)
    for parent in sorted(by_parent):
        for crowd in _crowds(by_parent[parent], gap_us):
            subjects = len({episode.subject for episode in crowd})
            if subjects <= MAX_SUBJECTS:
                yield from crowd
                continue
            combined = Episode(parent[1], parent, crowd[0].from_at, crowd[0].to_at)
            combined.subjects = subjects
            for episode in crowd:
                combined.join(episode)
            yield combined


def _crowds(episodes: list[Episode], gap_us: int) -> Iterator[list[Episode]]:
    crowd: list[Episode] = []
    end = 0
    for episode in sorted(episodes, key=lambda episode: (episode.from_at, episode.subject)):
        if crowd and episode.from_at - end > gap_us:
            yield crowd
            crowd = []
        end = max(end, episode.to_at) if crowd else episode.to_at
        crowd.append(episode)
    if crowd:
        yield crowd
