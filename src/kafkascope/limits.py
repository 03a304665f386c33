"""Every cap in one place, each with its precedent. No number here is reached by well-formed Kafka traffic."""

# Kafka's socket.request.max.bytes: a broker closes the connection on a larger request.
MAX_FRAME_BYTES = 104_857_600

# What `decode` reads from a file, standard input or the command line: one frame with its 4-byte length.
# In text form (hex, hex dump, base64) a byte takes up to five characters.
MAX_INPUT_BYTES = MAX_FRAME_BYTES + 4
MAX_INPUT_CHARACTERS = 5 * MAX_INPUT_BYTES

# Java refuses strings longer than this in both directions, compact ones too (MessageUtil, int16 length).
MAX_STRING_BYTES = 32_767

# An unsigned varint of a length or count: five groups of seven bits hold any int32 (KIP-482).
MAX_VARINT_BYTES = 5
# A zig-zag varlong in a record: ten groups hold any int64 (ByteUtils.readVarlong).
MAX_VARLONG_BYTES = 10

# The record batches of one piece of record data, unpacked. Kafka has no cap of its own; message.max.bytes defaults to
# 1 MiB compressed, and real batches unpack to tens of megabytes at the most.
MAX_UNPACKED_BYTES = 268_435_456
# Batches, records and headers of one piece of record data: the largest frame full of records of 50 bytes. A record of
# seven bytes becomes an object of two hundred.
MAX_RECORD_ITEMS = 2_000_000
# Reasons against exactness listed for one piece of record data: every field of every record can be one.
MAX_REASONS = 100
# A message set (magic 0 and 1) can hold a compressed set inside a compressed set; Kafka writes one level.
MAX_NESTED_MESSAGE_SETS = 1

# Byte spans kept for one message: the annotated view of anything larger is not for reading.
MAX_SPANS = 1_000_000

# Values shown in a terminal before a list or a byte string is cut, unless `--full` asks for all.
MAX_SHOWN_ITEMS = 100
MAX_SHOWN_BYTES = 4_096
