"""Reads the roles that a node took in the quorum from its server log, as lines of truth."""

import datetime
import json
import re
from pathlib import Path

# `[2026-11-15 10:07:09,123] INFO [RaftManager id=1] Completed transition to Leader(…, epoch=2, …) from …`
_TRANSITION = re.compile(
    r"^\[([^]]+)\] INFO \[RaftManager id=\d+\] Completed transition to (\w+?)(?:State)?\((.*?)\) from ", re.MULTILINE
)
_EPOCH = re.compile(r"\bepoch=(\d+)")
_LEADER = re.compile(r"\bleader=(\d+)")


def raft_roles(node: int, server_log: Path, since: int) -> list[str]:
    """From a time in microseconds on; `at` has the log's milliseconds. A follower names its `leader`."""
    if not server_log.exists():
        return []
    events = []
    for time, role, state in _TRANSITION.findall(server_log.read_text(errors="replace")):
        moment = datetime.datetime.strptime(f"{time}+0000", "%Y-%m-%d %H:%M:%S,%f%z")
        at = round(moment.timestamp() * 1000) * 1000
        epoch, leader = _EPOCH.search(state), _LEADER.search(state)
        event = {"at": at, "who": f"node-{node}", "event": "raft", "role": role}
        event |= {"epoch": int(epoch[1])} if epoch else {}
        event |= {"leader": int(leader[1])} if leader else {}
        if at >= since:
            events.append(json.dumps(event))
    return events
