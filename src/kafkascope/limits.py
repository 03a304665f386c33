"""Every cap in one place, each with its precedent. No number here is reached by well-formed Kafka traffic."""

# Kafka's socket.request.max.bytes: a broker closes the connection on a larger request.
MAX_FRAME_BYTES = 104_857_600

# What `decode` reads from a file, standard input or the command line: one frame with its 4-byte length.
# In text form (hex, hex dump, base64) a byte takes up to five characters.
MAX_INPUT_BYTES = MAX_FRAME_BYTES + 4
MAX_INPUT_CHARACTERS = 5 * MAX_INPUT_BYTES
# Packets in the text of a hex dump: `tcpdump -X` shows the one that is wanted, and a few around it.
MAX_DUMPED_PACKETS = 1_000

# Java refuses strings longer than this in both directions, compact ones too (MessageUtil, int16 length).
MAX_STRING_BYTES = 32_767

# An unsigned varint of a length or count: five groups of seven bits hold any int32 (KIP-482).
MAX_VARINT_BYTES = 5
# A zig-zag varlong in a record: ten groups hold any int64 (ByteUtils.readVarlong).
MAX_VARLONG_BYTES = 10

# The record batches of one piece of record data, unpacked. Kafka has no cap of its own; message.max.bytes defaults to
# 1 MiB compressed, and real batches unpack to tens of megabytes at the most. Keys and values are copies of it.
MAX_UNPACKED_BYTES = 134_217_728
# Batches, records and headers of one piece of record data: the largest frame full of records of 50 bytes. A record of
# seven bytes becomes an object of a hundred, a header of six takes two hundred.
MAX_RECORD_ITEMS = 2_000_000
# Reasons against exactness listed for one piece of record data: every field of every record can be one.
MAX_REASONS = 100
# A message set (magic 0 and 1) can hold a compressed set inside a compressed set; Kafka writes one level.
MAX_NESTED_MESSAGE_SETS = 1

# What the values of one message may take as Python objects: so much, and as many times its size, and no more in all. Of
# what Kafka sends, a Metadata response takes 14 times its size and the response to a TxnOffsetCommit 32 times; an array
# of empty names would take 96. The first two hold 400,000 of those partitions; the last a Metadata response about
# 350,000, where a ZooKeeper cluster could have 200,000. Columns hold any that is well-formed.
FREE_VALUE_BYTES = 33_554_432
MAX_VALUE_RATIO = 20
MAX_VALUE_BYTES = 201_326_592

# Byte spans kept for one message: the annotated view of anything larger is not for reading.
MAX_SPANS = 1_000_000

# Requests of a recording that wait for their answers, and the other way round, at 512 bytes each beside their own: a
# tiny frame takes more as a row than as bytes. Of Kafka a broker bounds it by queued.max.request.bytes, without a
# default; more than this, or than 65,000 tiny ones, waits where a recording has one direction alone, or where more than
# 500 MB a second wait for 60 ms. While they are paired they are there twice.
MAX_WAITING_BYTES = 33_554_432

# Values shown in a terminal before a list or a byte string is cut, unless `--full` asks for all.
MAX_SHOWN_ITEMS = 100
MAX_SHOWN_BYTES = 4_096
# Named pieces of bytes, and lines of JSON, that a page of the explorer shows of what it decodes: some ten metres of
# screen, and half a megabyte of page.
MAX_SHOWN_PIECES = 2_000

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
# What a compressed file may ask its reader to keep of what was unpacked: zstd's own limit, up to which `zstd --long=27`
# writes, and twice the dictionary of `xz -9`.
MAX_WINDOW_BYTES = 134_217_728
# A line of a request log, the parts that a container runtime made of it together: a response about 100,000 partitions
# is 13 MB of JSON. The dearest JSON takes thirty times its size as Python values.
MAX_LINE_BYTES = 16_777_216
# Problems of one kind listed for one batch of a recording; the last one stands for all that follow.
MAX_PROBLEMS = 100

# Bytes of one stream that came before what precedes them: Linux's largest receive window (tcp_rmem) is 6 MiB, and a
# sender has no more than that under way. The same in segments of 1,448 bytes, and small ones among them.
MAX_EARLY_BYTES = 8_388_608
MAX_EARLY_SEGMENTS = 8_192
# The same over all streams of a recording, at 176 bytes for each segment beside its own: thirty streams that lose
# packets at the same time, with 600 KiB each. What is kept takes up to three times as much while it moves.
MAX_EARLY_TOTAL_BYTES = 20_971_520
# TCP connections that are open at once in one recording, or in one task's share of it: all that a client
# machine can open to one broker (Linux's ip_local_port_range has 28,232 ports), and some from others. One takes
# 3 KB, so all of them a tenth of the gigabyte that `read` may take. Those that ended make room for new ones; segments
# of any others are counted.
MAX_CONNECTIONS = 32_768
# What `read --stats` holds of the names of one kind (APIs, client ids, connections) and their numbers: 30,000 client
# ids of 64 letters. Calls with further names are added up under one.
MAX_TALLIED_BYTES = 25_165_824
# Those of them in which no Kafka was found: half. Of more, as a scan or a flood of SYNs has, the oldest is forgotten
# and counted. And flows of no connection: every port of a machine once.
MAX_OTHER_CONNECTIONS = 16_384
MAX_UNUSED_FLOWS = 65_536
# What a recording tells that `read` remembers, of each kind: names of topic ids, and topics of fetch sessions. 40,000
# topics, or 100 sessions with 700 topics each. Of more the oldest is forgotten: ids stay ids then, and fetches have
# the topics that they name themselves.
MAX_LEARNT_BYTES = 16_777_216
# Lists of topics, at 8 bytes a name, that sessions give to fetches of one batch: fetches share one until it changes,
# and topics come and go seldom. Of more changes, fetches have the topics that they name themselves.
MAX_SESSION_NAME_BYTES = 16_777_216

# Bytes of a connection, each way, that are kept until it is known whether it is Kafka: three of the largest produce
# requests that a default client sends (max.request.size is 1 MiB). A start tells with its first bytes.
MAX_UNDECIDED_BYTES = 4_194_304
MAX_UNDECIDED_PIECES = 8_192
# Bytes of a stream that are searched for the next frame after a gap: eight of those requests. What is older goes.
MAX_SEARCHED_BYTES = 8_388_608
# Both over all connections of a recording: three times the larger.
MAX_SEARCHED_TOTAL_BYTES = 25_165_824
# Bytes of frames that are not complete yet, over all connections: one of the largest, and eight of 1 MiB beside it.
MAX_UNFINISHED_BYTES = 113_246_208
# A frame of a recording that isn't in the form that Kafka writes, or is shown or learned from: what may take twenty
# times its size as Python values. Longer ones that are odd are undecoded; well-formed ones become columns at any size.
MAX_CAREFUL_FRAME_BYTES = 8_388_608
# A body, not counting records, that becomes columns of a table: ten times its size, as an array of empty names, and as
# much again while they are written. A Metadata response about 200,000 partitions has 13 MB.
MAX_BODY_BYTES = 16_777_216
# Names of groups, members and topics that `read` lists of the exchanges of one batch: more than a cluster has topics.
# One with more of them is listed without.
MAX_NAMES = 262_144

# A password or token in a file. JSON web tokens with many claims reach 16 KB, where web servers stop reading headers.
MAX_SECRET_BYTES = 65_536
# A file of client settings: Java's own have a few kilobytes, those with certificates inside a few tens.
MAX_CONFIG_BYTES = 1_048_576
# A key or trust store: Java's cacerts, with every public authority, has 0.2 MB.
MAX_STORE_BYTES = 16_777_216
# SCRAM's iterations, which the server names and this side computes: Kafka allows 4,096 to 16,384 (ScramMechanism); more
# than a million would keep a core busy for seconds, and fewer than 4,096 give the password away (RFC 7677).
MIN_SCRAM_ITERATIONS = 4_096
MAX_SCRAM_ITERATIONS = 1_000_000
# The answer of a token endpoint: a token or an error, as JSON.
MAX_TOKEN_ANSWER_BYTES = 1_048_576

# Pages of the explorer that its server keeps as they are: of 100 KB at the most nearly always, so 25 MB.
MAX_KEPT_PAGES = 256

# Groups that `observe` asks about in one call: an answer with a hundred members each is a few megabytes.
MAX_OBSERVED_GROUPS_A_CALL = 100
# Bytes of answers that `observe` holds before it commits them, however short the time since: what a task of `ingest`
# lets wait for its tables is three times that.
MAX_OBSERVED_BYTES = 67_108_864
# Bytes of a request's head that `check --listen` reads: nginx's large_client_header_buffers are 8 KiB.
MAX_HTTP_HEAD_BYTES = 8_192

# A response before the login is finished (ApiVersions, SaslHandshake, SaslAuthenticate): what a broker takes from a
# client that has not logged in (sasl.server.max.receive.size).
MAX_LOGIN_FRAME_BYTES = 524_288
# Memory that one response of a live cluster takes with its frame, and all responses that a round of calls to every node
# keeps: Metadata of 200,000 partitions, which is what a ZooKeeper cluster could hold, takes nine tenths of it.
MAX_RESPONSE_MEMORY_BYTES = 150_994_944
# What a response takes that the careful decoder reads, where the quick one finds something odd in it, as the tags of a
# later release: Metadata of 20,000 partitions, and a second of work.
MAX_CAREFUL_MEMORY_BYTES = 16_777_216
# Larger responses come one at a time: the usual one is a few kilobytes.
MAX_SIDE_BY_SIDE_BYTES = 1_048_576
# Nodes of a live cluster that are read from Metadata and DescribeCluster: several times what the largest clusters have,
# which is hundreds. The rest is counted.
MAX_BROKERS = 2_048
# A host that a broker names: the longest name of the DNS (RFC 1035), with room for an IPv6 zone.
MAX_HOST_CHARACTERS = 255
# APIs that a node offers, of which 95 are known: ten times as many.
MAX_APIS = 1_000
# Versions of one API that `probe` lists without knowing them: a release adds one or two.
MAX_UNKNOWN_VERSIONS = 100

# Partitions whose leaders a live client remembers: half of what a ZooKeeper cluster could hold (200,000). Beyond it,
# what is known is forgotten and asked for again.
MAX_KNOWN_PARTITIONS = 100_000

# Ranges of offsets that a share group member holds at one broker: of the 2,000 records that a broker locks in each of
# 250 partitions (group.share.partition.max.record.locks), each for itself.
MAX_HELD_RANGES = 500_000
# Record data that waits in a share group member, and that its fetches under way may bring: eight of 16 MiB. Records
# that were handed out are the application's.
MAX_BUFFERED_RECORD_BYTES = 134_217_728

# What the explorer's decode page takes: a recording of a few thousand exchanges, or a frame sixteen times as large as a
# default broker takes from a producer (message.max.bytes is 1 MiB). Chunked or not, reading stops there.
MAX_UPLOAD_BYTES = 16_777_216
# How long it decodes, and how much memory that takes, in a process of its own: a person waits for ten seconds, and the
# largest upload unpacks to eight times MAX_UNPACKED_BYTES at the most.
MAX_DECODE_SECONDS = 10
MAX_DECODE_MEMORY_BYTES = 1_073_741_824
# Uploads that its server holds over all requests: four of the largest, being decoded or waiting for it, and a hundred
# small ones besides. A form is taken apart by copying, so memory is twice this at the most. Beyond it, 503.
MAX_UPLOADS_BYTES = 75_497_472
# How long an upload takes to arrive: the largest at 4.5 Mbit a second. It holds its place among the above.
MAX_UPLOAD_SECONDS = 30
# A url-encoded form: what a person pastes. It is unescaped piece by piece; a file comes as multipart.
MAX_URLENCODED_BYTES = 1_048_576
# Bytes of a message that go into a link to its decoded form: twice as many digits, and an address of 8,000 characters
# is what every recipient should take (RFC 9110, 4.1).
MAX_LINK_BYTES = 2_000

# Files of one ingest that may break the reader, each of which costs another pass over the others: more of them are no
# accident of some files.
MAX_BROKEN_FILES = 20
# A small file that kafkascope keeps beside the tables of a lake, as a sign of life or of progress: some hundred bytes.
MAX_LAKE_NOTE_BYTES = 65_536

# The explorer's pages of a lake: rows of a list that a person can still read, and recordings named on its first page.
MAX_LISTED_EXCHANGES = 100
MAX_SHOWN_RECORDINGS = 200
# How long it looks for the bytes of one exchange in the recordings: at a gigabyte a second that is some thirty of them.
MAX_REREAD_SECONDS = 30
# Pages of a lake made at once: each reads row groups of tens of megabytes, and more would only take turns in the
# interpreter, from reference pages too. Of re-reads one, in a process with the caps on memory of those that decode.
MAX_LAKE_PAGES_AT_ONCE = 2
MAX_REREADS_AT_ONCE = 1

# Requests that wait until another one is decoded, or another page of a lake is made, and how long: a person has waited
# that long, and a proxy would ask again. Beyond either, 503 with Retry-After.
MAX_QUEUED_REQUESTS = 32
MAX_QUEUE_SECONDS = 10
# Connections to the explorer: half of the files that a process may usually open (1,024), of which tables of a lake need
# some as well. A browser has six. Where all are taken, the one that was idle longest is closed.
MAX_OPEN_CONNECTIONS = 512
# How long a connection may take to send the head of a request, from its start or from the end of the last response, and
# how long a response may take to be received.
MAX_REQUEST_HEAD_SECONDS = 10
MAX_RESPONSE_SECONDS = 30

# Folders of compiled kernels that one user keeps, one per state of their sources: a few versions side by side, of 12 MB
# each. Those used within the last day stay in any case.
MAX_KERNEL_FOLDERS = 8
# A folder that no process has used for so long goes when the next one is made, as systemd-tmpfiles does it (/var/tmp).
MAX_KERNEL_IDLE_DAYS = 30

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
