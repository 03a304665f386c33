"""Prints the record batches inside a message. Keys, values and headers are printed only on request."""

from kafkascope.cli.terminal import heading, paint, prose
from kafkascope.codec.records.record_data import decode_records
from kafkascope.codec.records.record_types import Record, RecordBatch, Records
from kafkascope.codec.records.records_form import record_fields
from kafkascope.codec.result import Decoded
from kafkascope.errors import DecodeError
from kafkascope.formatting import count, printable
from kafkascope.limits import MAX_SHOWN_BYTES, MAX_SHOWN_ITEMS


def print_records(body: Decoded, release: str | None, *, contents: bool, full: bool) -> None:
    for path, data in record_fields(body, release):
        if not data:
            continue
        heading(f"Records in {path}")
        try:
            decoded = decode_records(data, unpack=contents)
        except DecodeError as error:
            prose(f"cannot be read: {error}", "  ")
            continue
        for batch in decoded.batches:
            print(f"  {_batch_line(batch)}")
            for record in _shown(batch, full) if contents else ():
                print(f"    {_record_line(record, full)}")
        if decoded.truncated_bytes:
            prose(f"the last batch is cut off after {decoded.truncated_bytes} bytes", "  ")
        for reason in _wrong(decoded):
            prose(reason, "  ")
    if not contents and any(data for _, data in record_fields(body, release)):
        print(paint("  --records shows keys, values and headers.", "dim"))


def _wrong(decoded: Records) -> list[str]:
    return [f"batch at offset {batch.start}: the checksum is wrong" for batch in decoded.batches if not batch.crc_ok]


def _batch_line(batch: RecordBatch) -> str:
    words = [
        f"offsets {batch.base_offset}-{batch.last_offset}",
        "? records" if batch.records_count is None else count(batch.records_count, "record"),
        f"magic {batch.magic}",
    ]
    words += [batch.compression] if batch.compression != "none" else []
    words += ["transactional"] if batch.is_transactional else []
    words += ["control"] if batch.is_control else []
    words += [f"producer {batch.producer_id} epoch {batch.producer_epoch}"] if batch.producer_id >= 0 else []
    words += [f"leader epoch {batch.partition_leader_epoch}"] if batch.partition_leader_epoch >= 0 else []
    return ", ".join([*words, f"{count(batch.end - batch.start, 'byte')} at {batch.start}"])


def _shown(batch: RecordBatch, full: bool) -> tuple[Record, ...]:
    records = batch.records or ()
    return records if full else records[:MAX_SHOWN_ITEMS]


def _record_line(record: Record, full: bool) -> str:
    parts = [f"{record.offset}", f"key {data_text(record.key, full)}", f"value {data_text(record.value, full)}"]
    parts += [f"header {printable(name)}={data_text(value, full)}" for name, value in record.headers]
    return "  ".join(parts)


def data_text(data: bytes | None, full: bool) -> str:
    """Quoted text, hex of other bytes, or null; cut unless all is requested."""
    if data is None:
        return "null"
    shown = data if full else data[:MAX_SHOWN_BYTES]
    try:
        text = shown.decode()
        if text.isprintable():
            return f'"{text}"' + ("…" if len(shown) < len(data) else "")
    except UnicodeDecodeError:
        pass
    return f"0x{shown.hex()}" + ("…" if len(shown) < len(data) else "")
