"""Defines every cap, each with its precedent. Well-formed Kafka traffic never reaches one."""

# Kafka's socket.request.max.bytes: a broker closes the connection on a larger request.
MAX_FRAME_BYTES = 104_857_600

# What `decode` reads from a file, standard input or the command line: one frame with its 4-byte length.
# In text form (hex, hex dump, base64) a byte takes up to five characters.
MAX_INPUT_BYTES = MAX_FRAME_BYTES + 4
MAX_INPUT_CHARACTERS = 5 * MAX_INPUT_BYTES
# Packets in the text of a hex dump: `tcpdump -X` usually shows one, and a few around it.
MAX_DUMPED_PACKETS = 1_000

# Java refuses strings longer than this in both directions, compact ones too (MessageUtil, int16 length).
MAX_STRING_BYTES = 32_767

# An unsigned varint of a length or count: five groups of seven bits hold any int32 (KIP-482).
MAX_VARINT_BYTES = 5
# A zig-zag varlong in a record: ten groups hold any int64 (ByteUtils.readVarlong).
MAX_VARLONG_BYTES = 10

# The record batches of one piece of record data, unpacked. Kafka has no cap of its own; message.max.bytes defaults to
# 1 MiB compressed, and real batches unpack to at most tens of megabytes. Keys and values are copies of it.
MAX_UNPACKED_BYTES = 134_217_728
# Batches, records and headers of one piece of record data: the largest frame full of records of 50 bytes. A record of
# seven bytes becomes an object of a hundred, a header of six takes two hundred.
MAX_RECORD_ITEMS = 2_000_000
# Reasons against exactness listed for one piece of record data: every field of every record can have one.
MAX_REASONS = 100
# A message set (magic 0 and 1) can hold a compressed set inside a compressed set; Kafka writes one level.
MAX_NESTED_MESSAGE_SETS = 1

# Memory of the values of one message as Python objects: this much, plus this many times its size, up to the maximum. Of
# Kafka's messages, a Metadata response takes 14 times its size and a TxnOffsetCommit response 32 times; an array
# of empty names would take 96. The first two hold 400,000 of those partitions; the last a Metadata response about
# 350,000, where a ZooKeeper cluster could have 200,000. Columns have no such cap.
FREE_VALUE_BYTES = 33_554_432
MAX_VALUE_RATIO = 20
MAX_VALUE_BYTES = 201_326_592

# Byte spans kept for one message: nobody reads the annotated view of a larger one.
MAX_SPANS = 1_000_000

# Requests of a recording that wait for their responses, and vice versa, plus 512 bytes each: a tiny frame takes more as
# a row than as bytes. In Kafka a broker bounds it by queued.max.request.bytes, which has no default. More than this, or
# than 65,000 tiny ones, only wait if a recording has a single direction, or if more than 500 MB per second wait for
# 60 ms. During pairing they exist twice.
MAX_WAITING_BYTES = 33_554_432

# Values shown in a terminal before a list or a byte string is cut, unless `--full` asks for all.
MAX_SHOWN_ITEMS = 100
MAX_SHOWN_BYTES = 4_096
# Named pieces of bytes, and lines of JSON, that a decode page of the explorer shows: about ten metres of screen, and
# half a megabyte of page.
MAX_SHOWN_PIECES = 2_000

# A record of a pcap file. tcpdump's largest snap length is 262,144; Linux glues at most 524,280 bytes into one packet
# (GSO_MAX_SIZE). A longer one has a broken length, and reading resumes after it.
MAX_PACKET_BYTES = 1_048_576
# A block of a pcapng file, as in Wireshark.
MAX_BLOCK_BYTES = 16_777_216
# Interfaces of one pcapng section: the packet block of its first draft counts them in 16 bits.
MAX_INTERFACES = 65_536
# Nested tunnels: a mirrored link (VXLAN) around a container network (VXLAN, GENEVE, IP in IP) has two.
MAX_TUNNELS = 4
# Bytes of IP fragments that wait for the rest of their datagram, and how long: Linux's ipfrag_high_thresh, ipfrag_time.
MAX_FRAGMENT_BYTES = 4_194_304
MAX_FRAGMENT_SECONDS = 30
# Memory that a compressed file may require its reader to keep of the unpacked data: zstd's own limit, which
# `zstd --long=27` reaches, and twice the dictionary of `xz -9`.
MAX_WINDOW_BYTES = 134_217_728
# A line of a request log, including all parts that a container runtime split it into: a response about 100,000
# partitions is 13 MB of JSON. The most expensive JSON takes thirty times its size as Python values.
MAX_LINE_BYTES = 16_777_216
# Problems of one kind listed for one batch of a recording; the last one represents the rest.
MAX_PROBLEMS = 100

# Bytes of one stream that arrived before their predecessors: Linux's largest receive window (tcp_rmem) is 6 MiB, and a
# sender has no more than that in flight. The same as a number of segments of 1,448 bytes, with some smaller ones.
MAX_EARLY_BYTES = 8_388_608
MAX_EARLY_SEGMENTS = 8_192
# The same over all streams of a recording, plus 176 bytes per segment: thirty streams that lose packets at the same
# time, with 600 KiB each. While they are moved, they take up to three times as much.
MAX_EARLY_TOTAL_BYTES = 20_971_520
# TCP connections that are open at once in one recording, or in one task's share of it: all that one client
# machine can open to one broker (Linux's ip_local_port_range has 28,232 ports), and some from others. One takes
# 3 KB, so all take a tenth of the gigabyte that `read` may take. Closed ones make room for new ones; segments of any
# further connections are only counted.
MAX_CONNECTIONS = 32_768
# Memory of `read --stats` for the names of one kind (APIs, client ids, connections) and their numbers: 30,000 client
# ids of 64 letters. Calls with further names are summed under one.
MAX_TALLIED_BYTES = 25_165_824
# Connections without Kafka: half. If a scan or a flood of SYNs has more, the oldest is dropped and counted. And flows
# without a connection: every port of a machine once.
MAX_OTHER_CONNECTIONS = 16_384
MAX_UNUSED_FLOWS = 65_536
# Memory of `read` for names of topic ids, and the same for topics of fetch sessions: 40,000 topics, or 100 sessions
# with 700 topics each. Beyond it the oldest are dropped: ids stay ids then, and fetches only have the topics that they
# name themselves.
MAX_LEARNT_BYTES = 16_777_216
# Lists of topics, at 8 bytes per name, that sessions give to fetches of one batch: fetches share a list until it
# changes, and topics change seldom. With more changes, fetches only have the topics that they name themselves.
MAX_SESSION_NAME_BYTES = 16_777_216

# Bytes of a connection, per direction, that are kept until it's clear whether it's Kafka: three of the largest produce
# requests of a default client (max.request.size is 1 MiB). If the start is recorded, its first bytes are enough.
MAX_UNDECIDED_BYTES = 4_194_304
MAX_UNDECIDED_PIECES = 8_192
# Bytes of a stream that are searched for the next frame after a gap: eight of those requests. Older bytes are dropped.
MAX_SEARCHED_BYTES = 8_388_608
# Both over all connections of a recording: three times the larger.
MAX_SEARCHED_TOTAL_BYTES = 25_165_824
# Bytes of incomplete frames, over all connections: one of the largest, and eight of 1 MiB besides.
MAX_UNFINISHED_BYTES = 113_246_208
# A frame of a recording that isn't in the form that Kafka writes, or that is displayed or used for names: it may take
# twenty times its size as Python values. Longer odd frames stay undecoded; well-formed ones become columns at any size.
MAX_CAREFUL_FRAME_BYTES = 8_388_608
# A body, without records, that becomes columns of a table: ten times its size for an array of empty names, and the same
# again while they are written. A Metadata response about 200,000 partitions has 13 MB.
MAX_BODY_BYTES = 16_777_216
# Names of groups, members and topics that `read` lists for the exchanges of one batch: more than a cluster has topics.
# An exchange beyond them is listed without names.
MAX_NAMES = 262_144

# A password or token in a file. JSON web tokens with many claims reach 16 KB, where web servers stop reading headers.
MAX_SECRET_BYTES = 65_536
# A file of client settings: Java's own have a few kilobytes, those with certificates inside a few tens.
MAX_CONFIG_BYTES = 1_048_576
# A key or trust store: Java's cacerts, with every public authority, has 0.2 MB.
MAX_STORE_BYTES = 16_777_216
# SCRAM's iterations, which the server names and this side computes: Kafka allows 4,096 to 16,384 (ScramMechanism); more
# than a million would keep a core busy for seconds, and fewer than 4,096 make the password easy to guess (RFC 7677).
MIN_SCRAM_ITERATIONS = 4_096
MAX_SCRAM_ITERATIONS = 1_000_000
# The response of a token endpoint: a token or an error, as JSON.
MAX_TOKEN_ANSWER_BYTES = 1_048_576

# Rendered pages that the explorer's server keeps: nearly always at most 100 KB each, so 25 MB.
MAX_KEPT_PAGES = 256

# Groups that `observe` describes in one call: a response with a hundred members each is a few megabytes.
MAX_OBSERVED_GROUPS_A_CALL = 100
# Bytes of responses that `observe` holds before it commits them, however short the time since: a task of `ingest` lets
# three times as much wait for its tables.
MAX_OBSERVED_BYTES = 67_108_864
# Bytes of a request's head that `check --listen` reads: nginx's large_client_header_buffers are 8 KiB.
MAX_HTTP_HEAD_BYTES = 8_192

# A response before the login has finished (ApiVersions, SaslHandshake, SaslAuthenticate): the size that a broker
# accepts from a client that hasn't logged in (sasl.server.max.receive.size).
MAX_LOGIN_FRAME_BYTES = 524_288
# Memory of one response of a live cluster with its frame, and of all responses that a round of calls to every node
# keeps: Metadata of 200,000 partitions, the most of a ZooKeeper cluster, takes nine tenths of it.
MAX_RESPONSE_MEMORY_BYTES = 150_994_944
# Memory of a response that the careful decoder reads because the fast one finds something odd, such as tags of a later
# release: Metadata of 20,000 partitions, and a second of work.
MAX_CAREFUL_MEMORY_BYTES = 16_777_216
# Larger responses are read one at a time; usual ones have a few kilobytes.
MAX_SIDE_BY_SIDE_BYTES = 1_048_576
# Nodes that are read from Metadata and DescribeCluster of a live cluster: several times as many as the largest
# clusters, which have hundreds. The rest is counted.
MAX_BROKERS = 2_048
# A host that a broker names: the longest name of the DNS (RFC 1035), with room for an IPv6 zone.
MAX_HOST_CHARACTERS = 255
# APIs of a node: ten times as many as the 95 known ones.
MAX_APIS = 1_000
# Unknown versions of one API that `probe` lists: a release adds one or two.
MAX_UNKNOWN_VERSIONS = 100

# Partitions whose leaders a live client caches: half of the most of a ZooKeeper cluster (200,000). Beyond it the cache
# is cleared and refilled.
MAX_KNOWN_PARTITIONS = 100_000

# Ranges of offsets that a share group member holds at one broker: of the 2,000 records that a broker locks in each of
# 250 partitions (group.share.partition.max.record.locks), each separately.
MAX_HELD_RANGES = 500_000
# Ranges of offsets in one batch of the Spark source of share groups, which are 20 bytes each in Spark's offset log: ten
# partitions of which every second record is acquired, of 2,000 that a broker locks in each.
MAX_BATCH_RANGES = 10_000
# Record data that waits in a share group member, and that its pending fetches may bring: eight of 16 MiB. Records that
# were handed out belong to the application.
MAX_BUFFERED_RECORD_BYTES = 134_217_728

# Bytes that the explorer's decode page accepts: a recording of a few thousand exchanges, or a frame sixteen times as
# large as a default broker accepts from a producer (message.max.bytes is 1 MiB). Chunked or not, reading stops there.
MAX_UPLOAD_BYTES = 16_777_216
# Time and memory for decoding, in its own process: a person waits for ten seconds, and the largest upload unpacks to at
# most eight times MAX_UNPACKED_BYTES.
MAX_DECODE_SECONDS = 10
MAX_DECODE_MEMORY_BYTES = 1_073_741_824
# Bytes of uploads that its server holds over all requests: four of the largest, decoding or waiting, and a hundred
# small ones besides. Parsing a form copies it, so memory is at most twice this. Beyond it, 503.
MAX_UPLOADS_BYTES = 75_497_472
# How long an upload may take to arrive: the largest at 4.5 Mbit/s. It counts towards the cap above meanwhile.
MAX_UPLOAD_SECONDS = 30
# A url-encoded form: text that a person pastes. It's unescaped piece by piece; a file comes as multipart.
MAX_URLENCODED_BYTES = 1_048_576
# Bytes of a message in a link to its decoded form: they take twice as many digits, and every recipient should accept an
# address of 8,000 characters (RFC 9110, 4.1).
MAX_LINK_BYTES = 2_000

# Files of one ingest that may break the reader, each of which costs another pass over the others: more of them point to
# another cause than the files.
MAX_BROKEN_FILES = 20
# A small file that kafkascope keeps beside the tables of a lake, for heartbeats or progress: some hundred bytes.
MAX_LAKE_NOTE_BYTES = 65_536

# The explorer's pages of a lake: rows of a list that a person can still read, and recordings named on its first page.
MAX_LISTED_EXCHANGES = 100
MAX_SHOWN_RECORDINGS = 200
# Totals of such lists that the server keeps, 100 bytes each.
MAX_KEPT_TOTALS = 1_024
# How long it searches the recordings for the bytes of one exchange: at 1 GB/s that is some thirty gigabytes.
MAX_REREAD_SECONDS = 30
# Pages of a lake made at once: each reads row groups of tens of megabytes, and more would only compete for the
# interpreter, also with reference pages. Only one re-read at once, in a process with the memory cap of decoding.
MAX_LAKE_PAGES_AT_ONCE = 2
MAX_REREADS_AT_ONCE = 1

# Requests that wait until another one is decoded, or another page of a lake is made, and how long: people and proxies
# don't wait longer. Beyond either, 503 with Retry-After.
MAX_QUEUED_REQUESTS = 32
MAX_QUEUE_SECONDS = 10
# Connections to the explorer: half of the files that a process may usually open (1,024), since tables of a lake need
# some too. A browser has six. If all are used, the one that was idle longest is closed.
MAX_OPEN_CONNECTIONS = 512
# How long a connection may take to send the head of a request, from its start or the end of the last response, and how
# long it may take to receive a response.
MAX_REQUEST_HEAD_SECONDS = 10
MAX_RESPONSE_SECONDS = 30

# Folders of compiled kernels per user, one per state of their sources: a few versions of 12 MB each. Folders used
# within the last day are always kept.
MAX_KERNEL_FOLDERS = 8
# A folder that no process has used for this long is deleted when the next one is created, as systemd-tmpfiles does for
# /var/tmp.
MAX_KERNEL_IDLE_DAYS = 30
# How long a process waits for a kernel that another one compiles, before it compiles the same one itself: the largest
# takes ten seconds alone. It matters only if the other one is stopped; a process that dies holds nothing.
MAX_KERNEL_WAIT_SECONDS = 60

# Folders below a path of `log`: a folder of brokers, of one broker's disks, a disk, a partition.
MAX_LOG_FOLDERS_DEEP = 4
# A checkpoint, quorum-state, meta.properties or producer snapshot of a log directory, which are read whole: a
# checkpoint of 16,000 partitions with names of 249 letters, or 100,000 producers. A line of four letters takes a
# hundred times its size as Python values.
MAX_SMALL_FILE_BYTES = 4_194_304
# After damage, how many bytes of checksums the search for the next batch may compute for each byte that it searches, so
# that hostile bytes cost linear time.
MAX_SEARCH_RATIO = 4
# Producers of one partition that `log --check` follows, at 200 bytes each; of more, the one idle longest is forgotten.
MAX_FOLLOWED_PRODUCERS = 65_536
# Findings of one kind in one file that `log --check` lists; the others are counted.
MAX_LISTED_FINDINGS = 20
# Bytes of keys and values of log records that wait until they are tables: small ones take forty times as much as Python
# objects.
MAX_LOG_TABLE_BYTES = 4_194_304
# An index of a segment: Kafka's default segment.index.bytes is 10 MiB. An entry takes twenty times its size.
MAX_INDEX_BYTES = 16_777_216
