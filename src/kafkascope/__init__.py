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
    "capture.exchanges.exchange": "Exchange",
    "capture.reader": "read",
    "codec.frame": "DecodedFrame decode_frame encode_frame",
    "codec.json_form": "from_json to_json",
    "codec.message": "decode encode",
    "codec.records.record_data": "decode_records encode_records",
    "codec.records.record_types": "Record RecordBatch Records new_batch",
    "codec.result": "Decoded Span UnknownTag",
    "columnar.decode": "decode_columns",
    "errors": "DecodeError EncodeError InputError KafkascopeError KernelError NotFoundError ReachError RefusedError"
    " UsageError",
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
    for home, names in _HOMES.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
