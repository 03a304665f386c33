import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.server.log.remote.metadata.storage.RemoteLogSegmentMetadataSnapshot;
import org.apache.kafka.server.log.remote.metadata.storage.serialization.RemoteLogMetadataSerde;
import org.apache.kafka.server.log.remote.storage.RemoteLogMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentId;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadataUpdate;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentState;
import org.apache.kafka.server.log.remote.storage.RemotePartitionDeleteMetadata;
import org.apache.kafka.server.log.remote.storage.RemotePartitionDeleteState;

/** A segment of `__remote_log_metadata` with every kind of record in every state, as Kafka's own class writes them. The
 *  argument is its path. */
public class RemoteLog {
    private static final long START = 1_767_268_800_000L;

    private RemoteLog() {}

    public static void main(String[] arguments) throws Exception {
        RemoteLogMetadataSerde serde = new RemoteLogMetadataSerde();
        List<SimpleRecord> records = new ArrayList<>();
        for (RemoteLogMetadata metadata : all()) {
            records.add(new SimpleRecord(START + records.size(), serde.serialize(metadata)));
        }
        Path path = Path.of(arguments[0]);
        try (FileChannel file = FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
            MemoryRecords.withRecords(Compression.NONE, records.toArray(SimpleRecord[]::new)).writeFullyTo(file);
        }
    }

    private static List<RemoteLogMetadata> all() {
        TopicIdPartition partition = new TopicIdPartition(new Uuid(7, 9), new TopicPartition("orders-eu.1", 3));
        List<RemoteLogMetadata> made = new ArrayList<>();
        int number = 0;
        for (RemoteLogSegmentState state : RemoteLogSegmentState.values()) {
            for (boolean custom : new boolean[] {false, true}) {
                number++;
                Optional<CustomMetadata> metadata =
                    custom ? Optional.of(new CustomMetadata(new byte[] {1, 2, (byte) number})) : Optional.empty();
                RemoteLogSegmentId id = new RemoteLogSegmentId(partition, new Uuid(11, number));
                RemoteLogSegmentMetadata segment = new RemoteLogSegmentMetadata(
                    id, 100L * number, 100L * number + 99, START - number, number, START + number, 1_048_576 + number,
                    metadata, state, Map.of(number, 100L * number, number + 4, 100L * number + 40), custom);
                made.add(segment);
                made.add(RemoteLogSegmentMetadataSnapshot.create(segment));
                made.add(new RemoteLogSegmentMetadataUpdate(id, START + number, metadata, state, number));
            }
        }
        for (RemotePartitionDeleteState state : RemotePartitionDeleteState.values()) {
            made.add(new RemotePartitionDeleteMetadata(partition, state, START + 50, 2));
        }
        return made;
    }
}
