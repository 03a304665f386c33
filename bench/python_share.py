"""Accepts `count` records of a topic with confluent-kafka's share consumer; prints nanoseconds from the first record to
the last acknowledgement, how many records there were, and nanoseconds of processor time.

`python python_share.py BOOTSTRAP GROUP TOPIC COUNT`, with the library on PYTHONPATH."""

import importlib
import sys
import time
from typing import Any

library: Any = importlib.import_module("confluent_kafka")


def main(bootstrap: str, group: str, topic: str, count: int) -> None:
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "share.acknowledgement.mode": "implicit"}
    consumer = library.ShareConsumer(settings)
    consumer.subscribe([topic])
    begun = records = processor = 0
    while records < count:
        for message in consumer.poll(0.5):
            if message.error() is None:
                begun = begun or time.perf_counter_ns()
                processor = processor or time.process_time_ns()
                records += message.value() is not None
    consumer.commit_sync()
    print(time.perf_counter_ns() - begun, records, time.process_time_ns() - processor)
    consumer.close()


if __name__ == "__main__":
    _bootstrap, _group, _topic, _count = sys.argv[1:]
    main(_bootstrap, _group, _topic, int(_count))
