import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Steady load until `close` on standard input. role=produce sends `burst` records every `every` ms, to the topic's
 *  `partitions` in turn, and logs each when the broker acknowledged it, with the time that took, or with its error.
 *  role=consume reads the topic in a consumer group. */
public class Load {
    private final Options options;
    private final Truth truth;
    private final String topic;
    private final AtomicBoolean closing = new AtomicBoolean();

    private Load(Options options) throws Exception {
        this.options = options;
        truth = new Truth(options);
        topic = options.text("topic");
    }

    public static void main(String[] arguments) throws Exception {
        Load load = new Load(new Options(arguments));
        switch (load.options.text("role")) {
            case "produce" -> load.produce();
            case "consume" -> load.consume();
            default -> throw new IllegalArgumentException(load.options.text("role"));
        }
        load.truth.write("closed");
    }

    private void produce() throws InterruptedException {
        Orders.obey(truth, Map.of("close", () -> closing.set(true)));
        int partitions = options.number("partitions", 1);
        int burst = options.number("burst", 1);
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(
                options.kafka("client.id", options.text("who")), new StringSerializer(), new StringSerializer())) {
            truth.write("started");
            for (int count = 0; !closing.get();) {
                for (int i = 0; i < burst; i++, count++) {
                    send(producer, count, count % partitions);
                }
                Thread.sleep(options.number("every", 100));
            }
        }
    }

    private void send(KafkaProducer<String, String> producer, int count, int partition) {
        long began = System.nanoTime();
        String value = options.text("who") + " says " + count;
        producer.send(new ProducerRecord<>(topic, partition, "key-" + count, value), (at, error) -> {
            long ms = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began);
            if (error == null) {
                truth.write("produced", "topic", topic, "partition", partition, "offset", at.offset(), "ms", ms);
            } else {
                truth.write("failed", "topic", topic, "partition", partition, "error",
                    error.getClass().getSimpleName(), "ms", ms);
            }
        });
    }

    private void consume() {
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(
                options.kafka("client.id", options.text("who"), "auto.offset.reset", "earliest"),
                new StringDeserializer(), new StringDeserializer())) {
            Orders.obey(truth, Map.of("close", () -> {
                closing.set(true);
                consumer.wakeup();
            }));
            consumer.subscribe(List.of(topic));
            truth.write("started");
            while (!closing.get()) {
                try {
                    for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                        truth.write("consumed", "topic", record.topic(), "partition", record.partition(), "offset",
                            record.offset(), "key", record.key());
                    }
                } catch (WakeupException woken) {
                    // only `close` wakes it, and the loop's condition sees that
                }
            }
        }
    }
}
