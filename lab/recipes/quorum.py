"""A quorum that loses a follower for a while, and then its leader."""

from typing import Any

from lab.stage import Stage


def play(stage: Stage) -> None:
    cluster = stage.cluster
    leader = cluster.leader()
    stage.note("leads", node=leader)
    watch = stage.java("Watch", "watch", {"what": "quorum", "every": "400", "churn": "3", "tool": "2"})
    watch.wait_for_event("created")
    frozen = next(number for number in (1, 2, 3) if number != leader)
    observer = 4
    cluster.freeze(frozen)
    stage.note("frozen", node=frozen)
    watch.wait_for("the frozen follower to lag", lambda event: _lag(event, frozen) >= 12)
    cluster.thaw(frozen)
    thawed = stage.note("thawed", node=frozen)
    watch.wait_for("the follower caught up", lambda event: event["at"] > thawed and 0 <= _lag(event, frozen) <= 5)
    cluster.kill(leader)
    killed = stage.note("killed", node=leader)

    def elected(event: dict[str, Any]) -> bool:
        if event["event"] != "quorum" or event["at"] <= killed:
            return False
        ends = {replica["id"]: int(replica["logEndOffset"]) for replica in event["observers"]}
        return bool(event["leader"] != leader and ends.get(observer, -1) >= 0)

    now = watch.wait_for("another leader that the observer follows", elected)
    stage.note("leads", node=now["leader"])
    cluster.start(leader)
    stage.note("restarted", node=leader)
    back = stage.note("waiting", node=leader)
    watch.wait_for("the killed node back", lambda event: event["at"] > back and 0 <= _lag(event, leader) <= 5)
    watch.close()


def _lag(event: dict[str, Any], node: int) -> int:
    """Lag in records, −1 if the response doesn't show it."""
    ends = {replica["id"]: int(replica["logEndOffset"]) for replica in event.get("voters", ())}
    leads = ends.get(event.get("leader", -1), -1)
    return leads - ends[node] if ends.get(node, -1) >= 0 and leads >= 0 else -1
