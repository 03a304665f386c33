"""Names the words of a job of `lines`, and its results. A job says what to write and where; the kernel changes those
that say how far it came."""

# How far: the next row, its next record or −1 before its batch, where that record begins, the next free byte.
ROW, RECORD, RECORD_AT, OUT = range(4)
# Batches and records that were written.
BATCHES, JOB_RECORDS = 4, 5
# Of a record that Python must write, or of an entry that it must fill.
AFTER_RECORD, NUMBER, JOB_VERSION = 6, 7, 8
# Headers by field, `JOB_STRIDE` numbers each; the first byte of the data that they were read from, and its place in the
# file.
JOB_ROWS, JOB_HEADERS, JOB_STRIDE, JOB_DATA, JOB_PLACE = 9, 10, 11, 12, 13
# Where there are decompressed records of a row.
JOB_UNPACKED_ROW, JOB_UNPACKED, JOB_UNPACKED_END = 14, 15, 16
ROOM, BATCH_ROOM, RECORD_ROOM, JOB_STACK, JOB_WALK = 17, 18, 19, 20, 21
# What to write of records, by what their keys and values are; of control batches it's always `JOB_CONTROL`.
KIND = 22
# Of `KIND`, and of `JOB_CONTROL`.
ENTRIES, CONTROL_ENTRIES = 23, 24
# Pairs of an address and a size.
JOB_TEXTS = 25
# Of records, both ends inclusive; and whether lines of batches are left out.
FIRST_OFFSET, LAST_OFFSET, FIRST_MS, LAST_MS, ONLY_RECORDS = 26, 27, 28, 29, 30
JOB_JOB_WORDS = 31

NO_RECORDS, JOB_COORDINATOR, JOB_FRAMED, JOB_CONTROL, PLAIN = range(5)

# Results. All rows are written; the room is used up; Python must write this batch, or this record; it must decompress
# this batch, or fill an entry.
DONE, NO_SPACE, CAREFUL_BATCH, CAREFUL_RECORD, JOB_PACKED, JOB_UNKNOWN_TYPE = range(6)

# An entry: what is known of a type and version; the text before the key; programs of key and value, 0 where there is
# none; how many bytes come before the value's message.
JOB_STATE, TYPE_TEXT, TYPE_TEXT_SIZE, KEY_CODE, VALUE_CODE, VALUE_SKIP, ENTRY_WORDS = range(7)
# What is known: nothing yet, that Python must write such records, the rest of the entry, or that nobody wants them.
JOB_UNKNOWN, JOB_CAREFUL, WRITTEN, UNWANTED = range(4)
# Entries are found by number, and within one by version; a tombstone is version −1.
NUMBERS, VERSIONS = 64, 32

# Texts of a batch's line: before its numbers, names of compressions and of types of timestamps, and what is true.
(
    AT_POSITION, AT_SIZE, AT_BASE, AT_LAST, AT_COUNT, AT_COMPRESSION, AT_TIMESTAMP_TYPE, AT_MAX_TIMESTAMP, AT_HORIZON,
    AT_EPOCH, AT_PRODUCER, AT_PRODUCER_EPOCH, AT_SEQUENCE, AT_LAST_SEQUENCE, AT_TRANSACTIONAL, AT_CONTROL, AT_CRC,
    AT_CRC_OK,
) = range(18)  # fmt: skip
COMPRESSION_NAMES = 18
TIMESTAMP_TYPES = 23
FALSE, TRUE, JOB_NULL = 25, 26, 27
# Texts of a record's line.
(
    AT_OFFSET, AT_TIMESTAMP, AT_RECORD_EPOCH, AT_RECORD_PRODUCER, AT_RECORD_SEQUENCE, AT_KEY_BYTES, AT_VALUE_BYTES,
    AT_VALUE, AT_PROBLEM, AT_PLAIN_KEY, AT_HEADERS, AT_HEADER_KEY, AT_HEADER_VALUE, AT_NEXT_HEADER, AT_RECORD_END,
) = range(28, 43)  # fmt: skip
TEXT_COUNT = 43
