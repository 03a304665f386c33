"""Makes the Kafka wire readable: `decode`, `encode`, `decode_frame`, `encode_frame`, `to_json`, `from_json`.

Names are loaded on first use, so that importing kafkascope costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkascope.capture.exchanges.exchange import Exchange
    from kafkascope.capture.reader import read
    from kafkascope.codec.frame import DecodedFrame, decode_frame, encode_frame
    from kafkascope.codec.json_form import from_json, to_json
    from kafkascope.codec.message import decode, encode
    from kafkascope.codec.records.record_data import decode_records, encode_records
    from kafkascope.codec.records.record_types import Record, RecordBatch, Records, new_batch
    from kafkascope.codec.result import Decoded, Span, UnknownTag
    from kafkascope.columnar.decode import decode_columns
    from kafkascope.errors import (
        DecodeError,
        EncodeError,
        InputError,
        KafkascopeError,
        KernelError,
        NotFoundError,
        ReachError,
        RefusedError,
        UsageError,
    )

__version__ = "0.1.0"

_HOMES = {
    "Decoded": "codec.result",
    "DecodedFrame": "codec.frame",
    "DecodeError": "errors",
    "EncodeError": "errors",
    "Exchange": "capture.exchanges.exchange",
    "InputError": "errors",
    "KafkascopeError": "errors",
    "KernelError": "errors",
    "NotFoundError": "errors",
    "Record": "codec.records.record_types",
    "RecordBatch": "codec.records.record_types",
    "ReachError": "errors",
    "Records": "codec.records.record_types",
    "RefusedError": "errors",
    "Span": "codec.result",
    "UnknownTag": "codec.result",
    "UsageError": "errors",
    "decode": "codec.message",
    "decode_columns": "columnar.decode",
    "decode_frame": "codec.frame",
    "decode_records": "codec.records.record_data",
    "encode": "codec.message",
    "encode_frame": "codec.frame",
    "encode_records": "codec.records.record_data",
    "from_json": "codec.json_form",
    "new_batch": "codec.records.record_types",
    "read": "capture.reader",
    "to_json": "codec.json_form",
}

__all__ = [
    "DecodeError",
    "Decoded",
    "DecodedFrame",
    "EncodeError",
    "Exchange",
    "InputError",
    "KafkascopeError",
    "KernelError",
    "NotFoundError",
    "ReachError",
    "Record",
    "RecordBatch",
    "Records",
    "RefusedError",
    "Span",
    "UnknownTag",
    "UsageError",
    "__version__",
    "decode",
    "decode_columns",
    "decode_frame",
    "decode_records",
    "encode",
    "encode_frame",
    "encode_records",
    "from_json",
    "new_batch",
    "read",
    "to_json",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'kafkascope' has no attribute {name!r}")
    return getattr(import_module(f"kafkascope.{home}"), name)
