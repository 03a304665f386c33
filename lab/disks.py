"""Fills the disks of a small cluster and copies its data directories, `python -m lab.disks OUT [RELEASE]`:
transactions, one of them left open, every compression, compaction, groups of every kind, snapshots, a node that was
killed."""

import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from lab.cluster import Cluster
from lab.jars import KAFKA
from lab.settings import SASL, USERS
from lab.stage import Stage
from lab.wire import until

_SETTLE_SECONDS = 90.0
_SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:alice",
    "delegation.token.secret.key": "token-secret",
    "log.cleaner.backoff.ms": "200",
    "log.index.size.max.bytes": "8192",
    "metadata.log.max.record.bytes.between.snapshots": "6000",
    "metadata.log.max.snapshot.interval.ms": "4000",
    "share.coordinator.snapshot.update.records.per.snapshot": "6",
    "log.flush.offset.checkpoint.interval.ms": "1000",
}
_KILLED = 2


def fill(out: Path, release: str = KAFKA, nodes: int = 3, say: Callable[[str], None] = lambda _: None) -> None:
    """`out/node-N` are the data directories. Groups are those that the release has."""
    with (
        tempfile.TemporaryDirectory(prefix="kafkascope-disks-") as place,
        Cluster(nodes, sasl=True, release=release, settings=_SETTINGS) as cluster,
        Stage(cluster, Path(place), say) as stage,
    ):
        _use(stage, cluster, nodes, new_groups=release == KAFKA)
        compacted = cluster.nodes[1].place.folder / "data" / "cleaner-offset-checkpoint"
        until("a compacted partition", lambda: "compacted 0" in _text(compacted), _SETTLE_SECONDS)
        snapshots = cluster.nodes[1].place.folder / "data" / "__cluster_metadata-0"
        until("a snapshot", lambda: any(snapshots.glob("*-*.checkpoint")), _SETTLE_SECONDS)
        if nodes > 1:
            cluster.kill(_KILLED)
        for number in sorted(cluster.nodes):
            # The last controller of several can't end in order: it would ask for a majority.
            if cluster.nodes[number].process is not None:
                (cluster.stop if nodes == 1 or number != max(cluster.nodes) else cluster.kill)(number)
        for number, node in cluster.nodes.items():
            shutil.copytree(node.place.folder / "data", out / f"node-{number}")


def _use(stage: Stage, cluster: Cluster, nodes: int, *, new_groups: bool) -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    login = {
        "kafka.token.bootstrap.servers": cluster.addresses(SASL),
        "kafka.token.security.protocol": "SASL_PLAINTEXT",
        "kafka.token.sasl.mechanism": "PLAIN",
        "kafka.token.sasl.jaas.config": f'{module} required username="alice" password="{USERS["alice"]}";',
    }
    filler = stage.java("Disks", "filler", {"copies": str(nodes), **login})
    filler.wait_for_event("described")
    common = {"topic": "words", "count": "20"}
    stage.java("Client", "words", {"role": "produce", **common}).finish()
    for protocol in ("classic", "consumer") if new_groups else ("classic",):
        group = {"kafka.group.id": f"readers-{protocol}", "kafka.group.protocol": protocol}
        stage.java("Client", f"reader-{protocol}", {"role": "consume", **common, **group}).finish()
    if new_groups:
        share = {"topic": "words", "kafka.group.id": "processors", "commit": "sync", "kafka.max.poll.records": "3"}
        share |= {"kafka.share.acquire.mode": "record_limit", "rules": "words-0-3=release;words-0-5=reject"}
        member = stage.java("ShareMember", "sharer", share)
        member.wait_for("a rejected record", lambda event: event.get("type") == "REJECT")
        member.wait_for("its last record", lambda event: event.get("offset") == 19)
        member.close()
        streams = {"topic": "words", "output": "counts", "kafka.application.id": "counters"}
        counter = stage.java("StreamsMember", "counter", {**streams, "kafka.state.dir": str(stage.folder / "state")})
        counter.wait_for("tasks", lambda event: event["event"] == "holds" and bool(event["active"]))
        counter.close()
    filler.wait_for_event("open")
    filler.finish()


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


if __name__ == "__main__":
    fill(Path(sys.argv[1]), (sys.argv[2:] or [KAFKA])[0], say=lambda line: print(line, flush=True))
