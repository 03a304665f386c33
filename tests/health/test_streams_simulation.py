"""A coordinator and its members, played by rule: the timeline is what they did, from their messages alone."""

import random
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest

from kafkascope.health.streams.events import StreamsEvent
from kafkascope.health.streams.timeline import timeline_of

INTERVAL = 1_000_000
SESSION = 4_000_000
LATENCY = 1_000
TASKS = [f"{subtopology}_{partition}" for subtopology in range(2) for partition in range(4)]
SAME_MEMBER = ("revoked", "promoted", "demoted")  # it went on without the task, or in another role

Held = tuple[str, str, str, int, int | None, str | None]


@dataclass
class Player:
    """A member: what it holds by role, what it was granted last, when it speaks next."""

    name: str
    connection: str
    speaks_at: int
    epoch: int = 0
    held: dict[str, str] = field(default_factory=dict)
    granted: dict[str, str] | None = None
    since: dict[str, int] = field(default_factory=dict)
    last_request_at: int = 0
    crashed: bool = False
    fence: bool = False


class Group:
    """Grants an active task only when its last owner has reported without it, or was removed (KIP-1071)."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 1_700_000_000_000_000
        self.players: dict[str, Player] = {}
        self.reported: dict[str, dict[str, str]] = {}
        self.heard: dict[str, int] = {}
        self.target: dict[str, dict[str, str]] = {}
        self.epoch = 1
        self.count = 0
        self.events: list[StreamsEvent] = []
        self.truth: list[Held] = []

    def retarget(self) -> None:
        self.epoch += 1
        names = sorted(self.reported)
        self.target = {name: {} for name in names}
        for index, task in enumerate(TASKS):
            if names:
                start = self.random.randrange(len(names)) if self.random.random() < 0.3 else index
                self.target[names[start % len(names)]][task] = "active"
                if len(names) > 1:
                    self.target[names[(start + 1) % len(names)]][task] = "standby"

    def join(self) -> None:
        self.count += 1
        name = f"m{self.count}"
        self.players[name] = Player(name, f"c{self.count}", self.now)

    def end(self, player: Player, task: str, at: int, ended_by: str) -> None:
        self.truth.append((player.name, task, player.held.pop(task), player.since.pop(task), at, ended_by))

    def end_all(self, player: Player, at: int, ended_by: str) -> None:
        for task in list(player.held):
            self.end(player, task, at, ended_by)

    def leave(self, player: Player) -> None:
        self.event("heartbeat", self.now, player, member_epoch=-1)
        self.end_all(player, self.now, "left")
        self.forget(player)
        del self.players[player.name]

    def crash(self, player: Player) -> None:
        if self.random.random() < 0.5:
            self.end_all(player, player.last_request_at, "lost")
        else:
            self.event("disconnected", self.now, player)
            self.end_all(player, self.now, "lost")
        player.crashed = True

    def forget(self, player: Player) -> None:
        if self.reported.pop(player.name, None) is not None:
            self.retarget()

    def event(self, kind: str, at: int, player: Player, **more: Any) -> None:
        made = StreamsEvent(
            kind,
            at,
            len(self.events),
            "g",
            f"x{len(self.events)}",
            player.connection,
            player.name,
            process_id=player.name,
        )
        self.events.append(made._replace(**more))

    def owned(self, name: str) -> set[str]:
        """Active tasks that it was granted, and those that it has not reported to have closed."""
        granted = self.players[name].granted or {}
        return {task for held in (granted, self.reported[name]) for task, role in held.items() if role == "active"}

    def speak(self, player: Player) -> None:
        at = self.now
        more: dict[str, str] = {}
        if player.epoch == 0:
            more = texts({})
        elif player.granted is not None and player.granted != player.held:
            for task, role in list(player.held.items()):
                task_granted = player.granted.get(task)
                if task_granted != role:
                    how = "revoked" if task_granted is None else "promoted" if task_granted == "active" else "demoted"
                    self.end(player, task, at, how)
            for task, role in player.granted.items():
                if task not in player.held:
                    player.held[task], player.since[task] = role, at
            more = texts(player.held)
        self.event("heartbeat", at, player, member_epoch=player.epoch, **more)
        player.last_request_at = self.heard[player.name] = at
        player.speaks_at = at + INTERVAL - self.random.randrange(100_000)
        if player.fence:
            self.event("answer", at + LATENCY, player, error_code=110)
            self.end_all(player, at + LATENCY, "fenced")
            self.forget(player)
            player.epoch, player.granted, player.fence = 0, None, False
            return
        if player.epoch == 0:
            self.reported[player.name] = {}
            self.retarget()
        elif more:
            self.reported[player.name] = dict(player.held)
        owners = {task: name for name in self.reported for task in self.owned(name)}
        grant = {
            task: role
            for task, role in self.target[player.name].items()
            if role != "active" or owners.get(task, player.name) == player.name
        }
        changed = grant != player.granted
        player.granted, player.epoch = grant, self.epoch
        self.event(
            "answer", at + LATENCY, player, member_epoch=self.epoch, error_code=0,
            heartbeat_interval_ms=INTERVAL // 1000, **(texts(grant) if changed else {}),
        )  # fmt: skip

    def run(self, seconds: int) -> None:
        """Something happens about every two seconds; then quiet for long enough that everybody lost is noticed."""
        self.join()
        end = self.now + seconds * 1_000_000
        while self.now < end + 3 * SESSION:
            self.now += 50_000 + self.random.randrange(1000) * 10
            alive = [player for player in self.players.values() if not player.crashed]
            if self.now < end and self.random.random() < 0.03:
                happening = self.random.choice(["join", "join", "leave", "crash", "fence"])
                if happening == "join" and len(alive) < 6:
                    self.join()
                elif happening != "join" and len(alive) > 1:
                    chosen = self.random.choice(alive)
                    if happening == "fence":
                        chosen.fence = chosen.epoch > 0
                    else:
                        (self.leave if happening == "leave" else self.crash)(chosen)
            for player in list(self.players.values()):
                if player.crashed and self.now - self.heard.get(player.name, 0) >= SESSION:
                    self.forget(player)
                    del self.players[player.name]
                elif not player.crashed and player.speaks_at <= self.now:
                    self.speak(player)
        for player in self.players.values():
            self.truth += [
                (player.name, task, role, player.since[task], None, None) for task, role in player.held.items()
            ]


def texts(held: dict[str, str]) -> dict[str, str]:
    return {
        name: ",".join(task for task, role in held.items() if role == name) for name in ("active", "standby", "warmup")
    }


def alike(held: Held) -> Held:
    """A standby that closes and comes back active may be told as revoked or promoted."""
    return (*held[:5], "revoked" if held[5] in SAME_MEMBER else held[5])


@pytest.mark.parametrize("seed", range(40))
def test_intervals_moves_and_losses_are_what_was_played(seed: int) -> None:
    group = Group(seed)
    group.run(120)
    events = sorted(group.events, key=lambda event: (event.at_us, event.order))
    timeline = timeline_of(events, session_timeout_ms=SESSION // 1000)
    assert timeline is not None

    intervals_found = [
        (row.member_id, f"{row.subtopology_id}_{row.partition}", str(row.role), row.from_at, row.to_at, row.ended_by)
        for row in timeline.tasks
    ]
    assert sorted(map(alike, intervals_found), key=str) == sorted(map(alike, group.truth), key=str)
    assert all(row.from_known and row.source == "heartbeat" for row in timeline.tasks)

    active: dict[str, list[Held]] = defaultdict(list)
    for held in sorted(group.truth, key=lambda held: held[3]):
        if held[2] == "active":
            active[held[1]].append(held)
    pairs = [(task, *pair) for task, holds in active.items() for pair in pairwise(holds)]
    moves = [
        (
            f"{move.subtopology_id}_{move.partition}",
            move.from_member_id,
            move.to_member_id,
            move.released_at,
            move.taken_at,
        )
        for move in timeline.moves
    ]
    assert sorted(moves) == sorted((task, old[0], new[0], old[4], new[3]) for task, old, new in pairs)

    pauses = {(task, old[4], new[3]) for task, old, new in pairs if old[4] != new[3]}
    gaps = {
        (f"{gap.subtopology_id}_{gap.partition}", gap.from_at, gap.to_at)
        for gap in timeline.unheld
        if gap.cause != "new"
    }
    assert {gap for gap in gaps if gap[2] is not None} == pauses

    crashed = {held[0] for held in group.truth if held[5] == "lost"}
    assert crashed <= {row.member_id for row in timeline.lost}
    assert {row.member_id for row in timeline.lost} <= {
        event.member_id for event in events if event.kind == "heartbeat"
    } - {event.member_id for event in events if event.member_epoch == -1}


def test_the_play_has_every_kind_of_ending() -> None:
    endings: set[str | None] = set()
    for seed in range(10):
        group = Group(seed)
        group.run(120)
        endings |= {held[5] for held in group.truth}
    assert endings == {"revoked", "promoted", "demoted", "left", "lost", "fenced", None}
