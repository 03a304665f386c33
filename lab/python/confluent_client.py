"""librdkafka through confluent-kafka: produces `count` records to `topic`, reads as many back, logs both.
Options that begin with `kafka.` are the library's own."""

import importlib
import time
from typing import Any

# run as a script: its own folder is on the path, and the library is where PYTHONPATH says
library: Any = importlib.import_module("confluent_kafka")
own: Any = importlib.import_module("truth")

_READ_SECONDS = 60.0


def main() -> None:
    options = own.options()
    truth = own.Truth(options)
    topic, count = options["topic"], int(options["count"])
    common = {name.removeprefix("kafka."): value for name, value in options.items() if name.startswith("kafka.")}
    common["client.id"] = options["who"]
    truth.write("started", library="librdkafka", version=library.libversion()[0])

    def delivered(error: Any, message: Any) -> None:
        if error is not None:
            raise RuntimeError(str(error))
        truth.write("produced", topic=message.topic(), partition=message.partition(), offset=message.offset())

    producer = library.Producer({**common, "compression.type": options.get("compression", "none"), "linger.ms": "5"})
    for number in range(count):
        producer.produce(topic, key=f"key-{number}", value=f"{options['who']} says {number}", on_delivery=delivered)
    producer.flush(_READ_SECONDS)

    group = {"group.id": f"readers-{options['who']}", "auto.offset.reset": "earliest"}
    consumer = library.Consumer({**common, **group})
    consumer.subscribe([topic])
    deadline = time.monotonic() + _READ_SECONDS
    seen = 0
    while seen < count and time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if message is None or message.error():
            continue
        seen += 1
        truth.write("consumed", topic=message.topic(), partition=message.partition(), offset=message.offset())
    consumer.commit(asynchronous=False)
    consumer.close()
    truth.write("closed")


main()
