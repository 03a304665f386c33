"""kafka-python of any release: produces `count` records to `topic`, reads as many back, logs both.
Options that begin with `kafka.` are the library's own, by its spelling (`kafka.security_protocol`)."""

import importlib
import time
from typing import Any

# run as a script: its own folder is on the path, and the library is where PYTHONPATH says
library: Any = importlib.import_module("kafka")
own: Any = importlib.import_module("truth")

_READ_SECONDS = 60.0


def main() -> None:
    options = own.options()
    truth = own.Truth(options)
    topic, count = options["topic"], int(options["count"])
    common = {name.removeprefix("kafka."): value for name, value in options.items() if name.startswith("kafka.")}
    common["bootstrap_servers"] = common.pop("bootstrap.servers").split(",")
    common["client_id"] = options["who"]
    truth.write("started", library="kafka-python", version=library.__version__)

    producer = library.KafkaProducer(**common, compression_type=options.get("compression"), linger_ms=5)
    sent = [
        producer.send(topic, key=f"key-{number}".encode(), value=f"{options['who']} says {number}".encode())
        for number in range(count)
    ]
    producer.flush()
    for future in sent:
        metadata = future.get(timeout=_READ_SECONDS)
        truth.write("produced", topic=metadata.topic, partition=metadata.partition, offset=metadata.offset)
    producer.close()

    group = f"readers-{options['who']}"
    consumer = library.KafkaConsumer(topic, **common, group_id=group, auto_offset_reset="earliest")
    deadline = time.monotonic() + _READ_SECONDS
    seen = 0
    while seen < count and time.monotonic() < deadline:
        for records in consumer.poll(timeout_ms=500).values():
            for record in records:
                seen += 1
                truth.write("consumed", topic=record.topic, partition=record.partition, offset=record.offset)
    consumer.close()
    truth.write("closed")


main()
