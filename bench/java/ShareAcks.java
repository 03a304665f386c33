import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** `accept` commits every record by itself; `renew` renews all records of a poll, and again when they come back. Prints
 *  nanoseconds from the first acknowledgement to the last result, and how many acknowledgements there were. */
public class ShareAcks {
    public static void main(String[] arguments) {
        boolean renew = arguments[0].equals("renew");
        int count = Integer.parseInt(arguments[4]);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[1]);
        settings.put("group.id", arguments[2]);
        settings.put("share.acknowledgement.mode", "explicit");
        long begun = 0;
        int done = 0;
        try (var consumer = new KafkaShareConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(arguments[3]));
            while (done < count) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(500));
                begun = begun == 0 && !records.isEmpty() ? System.nanoTime() : begun;
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    consumer.acknowledge(record, renew ? AcknowledgeType.RENEW : AcknowledgeType.ACCEPT);
                    done++;
                    if (!renew) {
                        consumer.commitSync();
                    }
                }
                if (renew && !records.isEmpty()) {
                    consumer.commitSync();
                }
            }
            System.out.println((System.nanoTime() - begun) + " " + done);
        }
    }
}
