"""The directory of a running broker: what is being written ends a file, and is never an error."""

import json
from pathlib import Path

from lab.cluster import Cluster
from lab.stage import Stage
from tests.support.cli import Cli

TOPIC = "written-meanwhile"


def test_a_directory_that_is_being_written_is_read_without_errors(cli: Cli, cluster: Cluster, tmp_path: Path) -> None:
    data = str(cluster.nodes[1].place.folder / "data")
    with Stage(cluster, tmp_path, lambda _: None) as stage:
        stage.set_up(f"{TOPIC}:1:1")
        options = {"role": "produce", "topic": TOPIC, "count": "4000", "kafka.batch.size": "300"}
        producer = stage.java("Client", "writer", options)
        producer.wait_for_event("produced")
        rounds = 0
        while producer.process.status is None or not rounds:
            for flags in (["--json"], ["--check", "--json"]):
                result = cli("log", *flags, data)
                assert result.code == 0, result.err
            rounds += 1
        producer.finish()
    result = cli("log", "--json", "--records", "--topic", TOPIC, data)
    rows = [json.loads(line) for line in result.out.splitlines()]
    assert [row["offset"] for row in rows if row["kind"] == "record"] == list(range(4000))
