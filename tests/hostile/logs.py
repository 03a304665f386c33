"""Request logs: lines that brokers wrote and lines of every API, their JSON edited, in the forms that containers give
them, split, cut and without ends."""

import json
from functools import cache
from random import Random
from typing import Any

from kafkascope.capture.request_log.lines import MARK
from kafkascope.codec.json_form import to_json
from kafkascope.schema.catalog import apis, message
from kafkascope.schema.layouts.layout import layout
from kafkascope.schema.layouts.samples import sample
from tests.captures import NAMES, request_logs
from tests.hostile.captures import bytes_edited, packed
from tests.hostile.json_edits import edit, odd_value

_SAMPLES = 200
_LONGEST = 20_000


def make(random: Random) -> bytes:
    lines = [_line(random) for _ in range(random.choice((1, 2, 5, 10)))]
    ends = random.choice((b"\n", b"\n", b"\n", b"\r\n", b"", b"\n\n\0"))
    data = ends.join(lines) + random.choice((b"\n", b""))
    if random.random() < 0.2:
        data = bytes_edited(data, random)
    return packed(data, random) if random.random() < 0.1 else data


def _line(random: Random) -> bytes:
    entry = json.loads(random.choice(_recorded()) if random.random() < 0.6 else _sampled(random.randrange(_SAMPLES)))
    for _ in range(random.choice((0, 1, 1, 2, 5))):
        edit(entry, random)
    text = json.dumps(entry) if random.random() < 0.97 else json.dumps(odd_value(random))
    if random.random() < 0.03:
        text = text[: random.randrange(len(text) + 1)]
    stamp = random.choice(
        ("[2026-11-15 10:06:17,123]", "[2026-11-15 10:06:17,123]", "2026-11-15T10:06:17.123456789Z", "",
         "[0000-99-99 99:99:99,9]", "9999-12-31T23:59:59.999999999+99:99", "[1677-09-21 00:12:43,145]"),
    )  # fmt: skip
    return _wrapped(f"{stamp} DEBUG {MARK}{text} (kafka.request.logger)", random)


def _wrapped(line: str, random: Random) -> bytes:
    form = random.randrange(6)
    if form == 0:
        stream = random.choice(("stdout", "stderr", 7))
        made = json.dumps({"log": line + random.choice(("\n", "")), "stream": stream, "time": odd_time(random)})
    elif form == 1:
        made = f"2026-11-15T09:30:00.1Z {random.choice(('stdout', 'stderr'))} {random.choice('FFP')} {line}"
    elif form == 2:
        made = json.dumps({"message": line, random.choice(("@timestamp", "ts", "instant")): odd_time(random)})
    else:
        made = line
    return made.encode(errors="surrogatepass")


def odd_time(random: Random) -> Any:
    return random.choice(
        ("2026-11-15T09:30:00.123Z", 1_763_200_000_123, 1.7e9, {"epochSecond": 2**70}, odd_value(random))
    )


@cache
def _recorded() -> list[str]:
    """The JSON of lines that brokers wrote."""
    lines = []
    for name in NAMES:
        for log in request_logs(name).values():
            for line in log.splitlines():
                if MARK in line and len(line) < _LONGEST:
                    text = line[line.index(MARK) + len(MARK) :]
                    lines.append(text[: text.rindex("}") + 1])
    return lines[:: max(1, len(lines) // 2_000)]


@cache
def _sampled(number: int) -> str:
    """An exchange of some API and version, with values at their boundaries."""
    random = Random(number)
    api = random.choice(sorted(apis().values()))
    version = random.choice(list(message(f"{api}Request").all_versions()))
    bodies = []
    for name in (f"{api}Request", f"{api}Response"):
        known = version if version in message(name).all_versions() else max(message(name).all_versions())
        bodies.append(to_json(name, known, sample(layout(name, known), number)))
    header = {"requestApiKey": message(f"{api}Request").key, "requestApiVersion": version, "correlationId": number}
    return json.dumps(
        {"requestHeader": header | {"clientId": "app"}, "request": bodies[0], "response": bodies[1], "totalTimeMs": 2.5,
         "connection": "10.0.0.1:9092-10.0.0.2:51234-3-17"},
    )  # fmt: skip
