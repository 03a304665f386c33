// Record data as Kafka's own builders write it, and what Kafka's own reader makes of record data.
//
//   java -cp JARS RecordsJudge.java make CASES       NAME  HEX  TRUTH    tab separated, one a line
//   java -cp JARS RecordsJudge.java read DATA TRUTHS  HEX → TRUTH         in the order of the data
//
// A truth is JSON: the batches with their records, as the reader gives them; "!ExceptionClass: message" where it failed.

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.message.SnapshotFooterRecord;
import org.apache.kafka.common.message.SnapshotHeaderRecord;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.ByteBufferOutputStream;

public class RecordsJudge {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();
    private static final Header[] NO_HEADERS = new Header[0];
    private static final long NOW = 1_700_000_000_000L;
    private static final int EPOCH = 7;
    private static final int RANDOM_CASES = 20;

    private final BufferedWriter out;
    private final Random random = new Random(20);

    private RecordsJudge(BufferedWriter out) {
        this.out = out;
    }

    public static void main(String[] args) throws IOException {
        try (BufferedWriter out = Files.newBufferedWriter(Path.of(args[args.length - 1]))) {
            RecordsJudge judge = new RecordsJudge(out);
            if (args[0].equals("make")) {
                judge.make();
            } else {
                for (String line : Files.readAllLines(Path.of(args[1]))) {
                    out.write(truth(HEX.parseHex(line)) + "\n");
                }
            }
        }
    }

    private record Item(long offset, long timestamp, byte[] key, byte[] value, Header[] headers) {
        Item(long offset, long timestamp, String key, String value) {
            this(offset, timestamp, bytes(key), bytes(value), NO_HEADERS);
        }
    }

    private static byte[] bytes(String text) {
        return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
    }

    /** Everything a builder can be told; the setters of a batch of today. */
    private static final class Plan {
        byte magic = 2;
        CompressionType compression = CompressionType.NONE;
        TimestampType timestampType = TimestampType.CREATE_TIME;
        long baseOffset = 0;
        long producerId = -1;
        short producerEpoch = -1;
        int baseSequence = -1;
        boolean transactional = false;
        boolean control = false;
        long deleteHorizon = -1;

        Plan of(int magic, CompressionType compression) {
            this.magic = (byte) magic;
            this.compression = compression;
            return this;
        }

        MemoryRecordsBuilder builder() {
            return new MemoryRecordsBuilder(new ByteBufferOutputStream(1024), magic,
                    Compression.of(compression).build(), timestampType, baseOffset, NOW + 5, producerId, producerEpoch,
                    baseSequence, transactional, control, EPOCH, 1 << 30, deleteHorizon);
        }

        byte[] build(List<Item> items) {
            MemoryRecordsBuilder builder = builder();
            for (Item item : items) {
                builder.appendWithOffset(item.offset, item.timestamp, item.key, item.value, item.headers);
            }
            return RecordsJudge.bytes(builder.build());
        }
    }

    private static byte[] bytes(MemoryRecords records) {
        ByteBuffer buffer = records.buffer().duplicate();
        byte[] data = new byte[buffer.remaining()];
        buffer.get(data);
        return data;
    }

    private void make() throws IOException {
        for (int magic = 0; magic <= 2; magic++) {
            for (CompressionType compression : CompressionType.values()) {
                if (compression != CompressionType.ZSTD || magic == 2) {
                    common(magic, compression);
                }
            }
        }
        onlyMagicTwo();
        controlBatches();
        cut();
    }

    private void common(int magic, CompressionType compression) throws IOException {
        String name = "magic " + magic + " " + compression.name;
        write(name + " plain", plan(magic, compression).build(List.of(
                new Item(0, NOW, "k0", "v0"), new Item(1, NOW + 1, "k1", "v1"), new Item(2, NOW + 2, "k2", "v2"))));
        write(name + " one", plan(magic, compression).build(List.of(new Item(0, NOW, "k0", "v0"))));
        write(name + " null and empty", plan(magic, compression).build(List.of(
                new Item(0, NOW, null, "v"), new Item(1, NOW, "", "v"), new Item(2, NOW, "k", null),
                new Item(3, NOW, "k", ""), new Item(4, NOW, (String) null, null), new Item(5, NOW, "", ""))));
        Plan high = plan(magic, compression);
        high.baseOffset = 5_000_000_000L;
        write(name + " high offsets with gaps", high.build(List.of(
                new Item(5_000_000_000L, NOW, "a", "1"), new Item(5_000_000_070L, NOW, "b", "2"),
                new Item(5_000_009_000L, NOW, "c", "3"))));
        write(name + " falling timestamps", plan(magic, compression).build(List.of(
                new Item(0, NOW, "a", "1"), new Item(1, NOW - 1, "b", "2"), new Item(2, NOW - 100_000, "c", "3"),
                new Item(3, 0, "d", "4"), new Item(4, NOW + 86_400_000L, "e", "5"))));
        List<Item> large = new ArrayList<>();
        for (int index = 0; index < 6; index++) {
            byte[] value = new byte[70_000];
            if (index % 2 == 0) {
                random.nextBytes(value);
            }
            large.add(new Item(index, NOW + index, bytes("large"), value, NO_HEADERS));
        }
        write(name + " larger than a block", plan(magic, compression).build(large));
        if (magic > 0) {
            Plan stamped = plan(magic, compression);
            stamped.timestampType = TimestampType.LOG_APPEND_TIME;
            byte[] data = stamped.build(List.of(new Item(0, NOW, "a", "1"), new Item(1, NOW + 1, "b", "2")));
            write(name + " log append time", data);
            byte[] created = plan(magic, compression).build(
                    List.of(new Item(0, NOW, "a", "1"), new Item(1, NOW + 1, "b", "2")));
            write(name + " log append time set by a broker", edited(created, batch -> {
                batch.setMaxTimestamp(TimestampType.LOG_APPEND_TIME, NOW + 9);
            }));
        }
        byte[] moved = plan(magic, compression).build(List.of(new Item(0, NOW, "a", "1"), new Item(1, NOW, "b", "2")));
        if (magic == 2 || (magic == 1 && compression != CompressionType.NONE)) {
            write(name + " offsets set by a broker", edited(moved, batch -> batch.setLastOffset(4_321)));
        }
        write(name + " several batches", joined(moved, moved, plan(magic, compression).build(large.subList(0, 1))));
        for (int index = 0; index < RANDOM_CASES; index++) {
            write(name + " random " + index, plan(magic, compression).build(randomItems(magic)));
        }
    }

    private void onlyMagicTwo() throws IOException {
        for (CompressionType compression : CompressionType.values()) {
            String name = "magic 2 " + compression.name;
            Header[] headers = {
                new RecordHeader("trace", bytes("1")), new RecordHeader("trace", null), new RecordHeader("", new byte[0]),
                new RecordHeader("Grüße 🦆", bytes("quack")), new RecordHeader("x".repeat(200), new byte[300])};
            List<Item> items = List.of(
                    new Item(0, NOW, bytes("k"), bytes("v"), headers), new Item(1, NOW, null, null, headers));
            write(name + " headers", plan(2, compression).build(items));
            Plan idempotent = plan(2, compression);
            idempotent.producerId = 9_000_000_001L;
            idempotent.producerEpoch = 3;
            idempotent.baseSequence = 41;
            write(name + " idempotent", idempotent.build(items));
            idempotent.transactional = true;
            write(name + " transactional", idempotent.build(items));
            Plan horizon = plan(2, compression);
            horizon.deleteHorizon = NOW + 1_000_000;
            write(name + " delete horizon", horizon.build(items));
            write(name + " emptied by compaction", emptied(idempotent.build(items)));
        }
        ByteBuffer header = ByteBuffer.allocate(DefaultRecordBatch.RECORD_BATCH_OVERHEAD);
        DefaultRecordBatch.writeEmptyHeader(header, (byte) 2, 12L, (short) 1, 5, 100L, 109L, EPOCH,
                TimestampType.CREATE_TIME, NOW, true, false);
        write("magic 2 empty header", header.array());
    }

    private void controlBatches() throws IOException {
        write("control commit", bytes(MemoryRecords.withEndTransactionMarker(33L, NOW, EPOCH, 12L, (short) 4,
                new EndTransactionMarker(ControlRecordType.COMMIT, 17))));
        write("control abort", bytes(MemoryRecords.withEndTransactionMarker(34L, NOW, EPOCH, 12L, (short) 4,
                new EndTransactionMarker(ControlRecordType.ABORT, 18))));
        LeaderChangeMessage change = new LeaderChangeMessage().setVersion((short) 0).setLeaderId(2)
                .setVoters(List.of(new LeaderChangeMessage.Voter().setVoterId(1),
                        new LeaderChangeMessage.Voter().setVoterId(2)))
                .setGrantingVoters(List.of(new LeaderChangeMessage.Voter().setVoterId(2)));
        write("control leader change",
                bytes(MemoryRecords.withLeaderChangeMessage(40L, NOW, EPOCH, ByteBuffer.allocate(512), change)));
        write("control snapshot header", bytes(MemoryRecords.withSnapshotHeaderRecord(0L, NOW, EPOCH,
                ByteBuffer.allocate(512), new SnapshotHeaderRecord().setLastContainedLogTimestamp(NOW - 1))));
        write("control snapshot footer", bytes(MemoryRecords.withSnapshotFooterRecord(9L, NOW, EPOCH,
                ByteBuffer.allocate(512), new SnapshotFooterRecord())));
        write("control kraft version", bytes(MemoryRecords.withKRaftVersionRecord(1L, NOW, EPOCH,
                ByteBuffer.allocate(512), new KRaftVersionRecord().setKRaftVersion((short) 1))));
        write("control voters", bytes(MemoryRecords.withVotersRecord(2L, NOW, EPOCH, ByteBuffer.allocate(512),
                new VotersRecord().setVoters(List.of(new VotersRecord.Voter().setVoterId(1)
                        .setVoterDirectoryId(Uuid.ONE_UUID))))));
    }

    private void cut() throws IOException {
        byte[] first = plan(2, CompressionType.NONE).build(List.of(new Item(0, NOW, "a", "1")));
        byte[] second = plan(2, CompressionType.GZIP).build(List.of(new Item(0, NOW, "b", "2")));
        byte[] old = plan(1, CompressionType.NONE).build(List.of(new Item(0, NOW, "c", "3")));
        byte[] all = joined(first, second, old, first);
        for (int length = first.length; length < all.length; length += 3) {
            write("cut at " + length, java.util.Arrays.copyOf(all, length));
        }
        write("nothing", new byte[0]);
    }

    private Plan plan(int magic, CompressionType compression) {
        return new Plan().of(magic, compression);
    }

    private List<Item> randomItems(int magic) {
        List<Item> items = new ArrayList<>();
        long offset = 0;
        int count = 1 + random.nextInt(40);
        for (int index = 0; index < count; index++) {
            offset += random.nextInt(5) == 0 ? 1 + random.nextInt(70_000) : index == 0 ? 0 : 1;
            long timestamp = switch (random.nextInt(6)) {
                case 0 -> 0;
                case 1 -> Long.MAX_VALUE - random.nextInt(100);
                case 2 -> random.nextLong() >>> 1;
                default -> NOW + random.nextInt(100_000) - 50_000;
            };
            Header[] headers = new Header[magic < 2 || random.nextBoolean() ? 0 : random.nextInt(4)];
            for (int at = 0; at < headers.length; at++) {
                headers[at] = new RecordHeader("h" + random.nextInt(1000), randomBytes());
            }
            items.add(new Item(offset, timestamp, randomBytes(), randomBytes(), headers));
        }
        return items;
    }

    private byte[] randomBytes() {
        int[] sizes = {0, 1, 5, 63, 64, 127, 128, 8191, 8192};
        if (random.nextInt(6) == 0) {
            return null;
        }
        byte[] data = new byte[sizes[random.nextInt(sizes.length)]];
        if (random.nextBoolean()) {
            random.nextBytes(data);
        }
        return data;
    }

    private interface Edit {
        void apply(MutableRecordBatch batch);
    }

    private static byte[] edited(byte[] data, Edit edit) {
        byte[] copy = data.clone();
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(copy)).batches()) {
            edit.apply(batch);
        }
        return copy;
    }

    /** What the log cleaner leaves of a batch whose records are all gone but whose producer is still known. */
    private static byte[] emptied(byte[] data) {
        MemoryRecords.RecordFilter filter = new MemoryRecords.RecordFilter(NOW, 1000) {
            @Override
            protected BatchRetentionResult checkBatchRetention(RecordBatch batch) {
                return new BatchRetentionResult(BatchRetention.RETAIN_EMPTY, false);
            }

            @Override
            protected boolean shouldRetainRecord(RecordBatch batch, Record record) {
                return false;
            }
        };
        ByteBuffer out = ByteBuffer.allocate(data.length + 1024);
        MemoryRecords.readableRecords(ByteBuffer.wrap(data)).filterTo(filter, out, BufferSupplier.NO_CACHING);
        byte[] left = new byte[out.position()];
        out.flip();
        out.get(left);
        return left;
    }

    private static byte[] joined(byte[]... parts) {
        ByteBuffer buffer = ByteBuffer.allocate(java.util.Arrays.stream(parts).mapToInt(part -> part.length).sum());
        for (byte[] part : parts) {
            buffer.put(part);
        }
        return buffer.array();
    }

    private void write(String name, byte[] data) throws IOException {
        out.write(name + "\t" + HEX.formatHex(data) + "\t" + truth(data) + "\n");
    }

    private static String truth(byte[] data) {
        try {
            MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(data));
            ObjectNode truth = JSON.createObjectNode();
            ArrayNode batches = truth.putArray("batches");
            int whole = 0;
            for (RecordBatch batch : records.batches()) {
                describe(batch, batches.addObject());
                whole += batch.sizeInBytes();
            }
            truth.put("truncated_bytes", data.length - whole);
            return JSON.writeValueAsString(truth);
        } catch (Throwable failed) {
            // a Throwable, as the reader allocates what a records count says and so runs out of memory on a bad one
            return ("!" + failed.getClass().getSimpleName() + ": " + failed.getMessage()).replaceAll("\\p{Cntrl}+", " ");
        }
    }

    private static void describe(RecordBatch batch, ObjectNode node) {
        node.put("crc", batch.checksum());
        node.put("crc_ok", batch.isValid());
        node.put("magic", batch.magic());
        node.put("base_offset", batch.baseOffset());
        node.put("last_offset", batch.lastOffset());
        node.put("max_timestamp", batch.maxTimestamp());
        node.put("timestamp_type", batch.timestampType().name);
        node.put("compression", batch.compressionType().name);
        node.put("is_transactional", batch.isTransactional());
        node.put("is_control", batch.isControlBatch());
        node.put("has_delete_horizon", batch.deleteHorizonMs().isPresent());
        node.put("partition_leader_epoch", batch.partitionLeaderEpoch());
        node.put("producer_id", batch.producerId());
        node.put("producer_epoch", batch.producerEpoch());
        node.put("base_sequence", batch.baseSequence());
        node.put("size", batch.sizeInBytes());
        ArrayNode records = node.putArray("records");
        ArrayNode control = node.putArray("control");
        for (Record record : batch) {
            ArrayNode row = records.addArray();
            row.add(record.offset()).add(record.timestamp()).add(hex(record.key())).add(hex(record.value()));
            ArrayNode headers = row.addArray();
            for (Header header : record.headers()) {
                byte[] value = header.value();
                headers.addArray().add(header.key()).add(value == null ? null : HEX.formatHex(value));
            }
            if (batch.isControlBatch()) {
                control.add(ControlRecordType.parse(record.key()).name());
            }
        }
    }

    private static String hex(ByteBuffer buffer) {
        if (buffer == null) {
            return null;
        }
        byte[] data = new byte[buffer.remaining()];
        buffer.duplicate().get(data);
        return HEX.formatHex(data);
    }
}
