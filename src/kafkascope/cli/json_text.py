"""JSON text in, values out; `InputError` names line and column, never the text."""

import json
from typing import Any

from kafkascope.errors import InputError


def parse_json(text: str) -> Any:
    if not text.strip():
        raise InputError("the JSON is empty")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"no JSON: {error.msg.lower()} (line {error.lineno}, column {error.colno})") from None
    except ValueError:
        raise InputError("no JSON of a Kafka message: a number of thousands of digits") from None
    except RecursionError:
        raise InputError("no JSON of a Kafka message: nested too deep") from None
