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

# Requests of a recording that wait for their answers, and the other way round. Of Kafka a broker bounds it by
# queued.max.request.bytes, without a default; more than this waits only where a recording has one direction alone.
MAX_WAITING_BYTES = 67_108_864

# Values shown in a terminal before a list or a byte string is cut, unless `--full` asks for all.
MAX_SHOWN_ITEMS = 100
MAX_SHOWN_BYTES = 4_096

# A record of a pcap file. tcpdump's largest snap length is 262,144; Linux glues at most 524,280 bytes into one packet
# (GSO_MAX_SIZE). A longer one is a broken length, and reading goes on behind it.
MAX_PACKET_BYTES = 1_048_576
# A block of a pcapng file, as Wireshark has it.
MAX_BLOCK_BYTES = 16_777_216
# Interfaces of one pcapng section: the packet block of its first draft counts them in 16 bits.
MAX_INTERFACES = 65_536
# Tunnels within each other: a mirrored link (VXLAN) around a container network (VXLAN, GENEVE, IP in IP) is two.
MAX_TUNNELS = 4
# Bytes of IP fragments that wait for the rest of their datagram, and how long: Linux's ipfrag_high_thresh, ipfrag_time.
MAX_FRAGMENT_BYTES = 4_194_304
MAX_FRAGMENT_SECONDS = 30
# Problems of one kind listed for one batch of a recording; the last one stands for all that follow.
MAX_PROBLEMS = 100

# Bytes of one stream that came before what precedes them: Linux's largest receive window (tcp_rmem) is 6 MiB, and a
# sender has no more than that under way. The same in segments of 1,448 bytes, and small ones among them.
MAX_EARLY_BYTES = 8_388_608
MAX_EARLY_SEGMENTS = 8_192
# The same over all streams of a recording: a hundred that lose packets at the same time, with 640 KiB each.
MAX_EARLY_TOTAL_BYTES = 67_108_864
# TCP connections of one recording: more than sixteen times the ports that a machine has. The rest is counted.
MAX_CONNECTIONS = 1_048_576
# Those of them in which no Kafka was found, and flows of no connection: every port of a machine once. Of more, as a
# scan or a flood of SYNs has, the oldest is forgotten and counted.
MAX_OTHER_CONNECTIONS = 65_536
MAX_UNUSED_FLOWS = 65_536

# Bytes of a connection, each way, that are kept until it is known whether it is Kafka: three of the largest produce
# requests that a default client sends (max.request.size is 1 MiB). A start tells with its first bytes.
MAX_UNDECIDED_BYTES = 4_194_304
MAX_UNDECIDED_PIECES = 8_192
# Bytes of a stream that are searched for the next frame after a gap: eight of those requests. What is older goes.
MAX_SEARCHED_BYTES = 8_388_608
# Both over all connections of a recording.
MAX_SEARCHED_TOTAL_BYTES = 67_108_864
# Bytes of frames that are not complete yet, over all connections: two and a half of the largest.
MAX_UNFINISHED_BYTES = 268_435_456
