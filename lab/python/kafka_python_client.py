"""kafka-python of any release: produces `count` records to `topic`, reads as many back, logs both.
Options that begin with `kafka.` are the library's own, by its spelling (`kafka.security_protocol`)."""

import importlib
import time
from typing import Any

# run as a script: its own folder is on the path, and the library is where PYTHONPATH says
library: Any = importlib.import_module("kafka")
own: Any = importlib.import_module("truth")

READ_SECONDS = 60.0


def main() -> None:
    given = own.options()
    truth = own.Truth(given)
    topic, count = given["topic"], int(given["count"])
    common = {name.removeprefix("kafka."): value for name, value in given.items() if name.startswith("kafka.")}
    common["bootstrap_servers"] = common.pop("bootstrap.servers").split(",")
    common["client_id"] = given["who"]
    truth.write("started", library="kafka-python", version=library.__version__)

    producer = library.KafkaProducer(**common, compression_type=given.get("compression"), linger_ms=5)
    sent = [
        producer.send(topic, key=f"key-{number}".encode(), value=f"{given['who']} says {number}".encode())
        for number in range(count)
    ]
    producer.flush()
    for one in sent:
        at = one.get(timeout=READ_SECONDS)
        truth.write("produced", topic=at.topic, partition=at.partition, offset=at.offset)
    producer.close()

    group = f"readers-{given['who']}"
    consumer = library.KafkaConsumer(topic, **common, group_id=group, auto_offset_reset="earliest")
    deadline = time.monotonic() + READ_SECONDS
    seen = 0
    while seen < count and time.monotonic() < deadline:
        for records in consumer.poll(timeout_ms=500).values():
            for record in records:
                seen += 1
                truth.write("consumed", topic=record.topic, partition=record.partition, offset=record.offset)
    consumer.close()
    truth.write("closed")


main()
