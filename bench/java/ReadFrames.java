// A file of frames in, nanoseconds of processor time a pass over all of them out: Kafka's own generated reader, warm.
//
//   java -cp CLASSES:JARS ReadFrames MESSAGE VERSION FILE SECONDS
//
// The file holds frames behind their int32 lengths. Passes go on for SECONDS to warm up and as long again to measure.
// One message a process, so that every call site sees one class, as it is fastest.

import com.sun.management.OperatingSystemMXBean;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.ProduceRequestData;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.record.internal.BaseRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;

public class ReadFrames {
    private static final int ROUNDS = 10;
    // what keeps the results alive to the compiler
    private static volatile Message last;
    private static volatile long total;

    public static void main(String[] args) throws Throwable {
        Class<?> type = Class.forName("org.apache.kafka.common.message." + args[0] + "Data");
        MethodHandle create = MethodHandles.publicLookup()
                .findConstructor(type, MethodType.methodType(void.class))
                .asType(MethodType.methodType(Message.class));
        short version = Short.parseShort(args[1]);
        List<ByteBuffer> frames = frames(ByteBuffer.wrap(Files.readAllBytes(Path.of(args[2]))));
        long seconds = (long) (1e9 * Double.parseDouble(args[3]));
        measure(create, version, frames, seconds);
        System.out.println(measure(create, version, frames, seconds));
    }

    private static List<ByteBuffer> frames(ByteBuffer all) {
        List<ByteBuffer> found = new ArrayList<>();
        while (all.hasRemaining()) {
            byte[] frame = new byte[all.getInt()];
            all.get(frame);
            found.add(ByteBuffer.wrap(frame));
        }
        return found;
    }

    /** Processor time of the whole process, collector included, a pass; of the best of ten rounds. */
    private static long measure(MethodHandle create, short version, List<ByteBuffer> frames, long nanos) throws Throwable {
        OperatingSystemMXBean process = ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);
        long best = Long.MAX_VALUE;
        for (int round = 0; round < ROUNDS; round++) {
            long start = process.getProcessCpuTime();
            long taken = 0;
            int passes = 0;
            while (taken < nanos / ROUNDS) {
                read(create, version, frames);
                passes++;
                taken = process.getProcessCpuTime() - start;
            }
            best = Math.min(best, taken / passes);
        }
        return best;
    }

    private static void read(MethodHandle create, short version, List<ByteBuffer> frames) throws Throwable {
        for (ByteBuffer frame : frames) {
            frame.position(0);
            Message message = (Message) create.invokeExact();
            message.read(new ByteBufferAccessor(frame), version);
            if (frame.hasRemaining()) {
                throw new IllegalStateException(frame.remaining() + " bytes left");
            }
            batches(message);
            last = message;
        }
    }

    /** Kafka's reader takes record data for a slice and looks at no batch; columns have a row for each. */
    private static void batches(Message message) {
        if (message instanceof FetchResponseData fetch) {
            fetch.responses().forEach(topic -> topic.partitions().forEach(partition -> headers(partition.records())));
        } else if (message instanceof ProduceRequestData produce) {
            produce.topicData().forEach(topic -> topic.partitionData().forEach(partition -> headers(partition.records())));
        }
    }

    private static void headers(BaseRecords records) {
        long sum = 0;
        for (RecordBatch batch : ((MemoryRecords) records).batches()) {
            sum += batch.baseOffset() + batch.lastOffset() + batch.sizeInBytes() + batch.partitionLeaderEpoch()
                    + batch.magic() + batch.checksum() + batch.compressionType().id + batch.maxTimestamp()
                    + batch.producerId() + batch.producerEpoch() + batch.baseSequence() + batch.countOrNull();
        }
        total = sum;
    }
}
