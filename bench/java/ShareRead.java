import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Accepts `count` records of a topic as a member of a share group; prints nanoseconds from the first record to the last
 *  acknowledgement, how many records there were, and nanoseconds of processor time. */
public class ShareRead {
    public static void main(String[] arguments) {
        int count = Integer.parseInt(arguments[3]);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[1]);
        settings.put("share.acknowledgement.mode", "implicit");
        var system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long begun = 0;
        long processor = 0;
        int records = 0;
        try (var consumer = new KafkaShareConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(arguments[2]));
            while (records < count) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(500))) {
                    if (begun == 0) {
                        begun = System.nanoTime();
                        processor = system.getProcessCpuTime();
                    }
                    records += record.value() == null ? 0 : 1;
                }
            }
            consumer.commitSync();
            long nanoseconds = System.nanoTime() - begun;
            System.out.println(nanoseconds + " " + records + " " + (system.getProcessCpuTime() - processor));
        }
    }
}
