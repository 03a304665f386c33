import java.lang.reflect.Method;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** A client of any release from 2.8 on: role=produce, transact, consume or admin. Uses only what all of them have. */
public class Client {
    private final Options options;
    private final Truth truth;
    private final String topic;
    private final int count;

    private Client(Options options) throws Exception {
        this.options = options;
        truth = new Truth(options);
        topic = options.text("topic");
        count = options.number("count", 10);
    }

    public static void main(String[] arguments) throws Exception {
        Options options = new Options(arguments);
        Client client = new Client(options);
        client.truth.write("started");
        for (String role : options.text("role").split(",")) {
            switch (role) {
                case "produce" -> client.produce();
                case "transact" -> client.transact();
                case "consume" -> client.consume();
                case "admin" -> client.admin();
                default -> throw new IllegalArgumentException(role);
            }
        }
        client.truth.write("closed");
    }

    private void produce() throws Exception {
        try (KafkaProducer<String, String> producer = producer()) {
            send(producer);
        }
    }

    /** One transaction committed, one aborted. */
    private void transact() throws Exception {
        try (KafkaProducer<String, String> producer = producer()) {
            producer.initTransactions();
            producer.beginTransaction();
            send(producer);
            producer.commitTransaction();
            truth.write("transaction", "outcome", "committed");
            producer.beginTransaction();
            send(producer);
            producer.abortTransaction();
            truth.write("transaction", "outcome", "aborted");
        }
    }

    private KafkaProducer<String, String> producer() {
        return new KafkaProducer<>(options.kafka("client.id", options.text("who"), "linger.ms", "5"),
            new StringSerializer(), new StringSerializer());
    }

    private void send(KafkaProducer<String, String> producer) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            sent.add(producer.send(new ProducerRecord<>(topic, "key-" + i, options.text("who") + " says " + i)));
        }
        producer.flush();
        for (Future<RecordMetadata> one : sent) {
            RecordMetadata at = one.get();
            truth.write("produced", "topic", at.topic(), "partition", at.partition(), "offset",
                at.hasOffset() ? at.offset() : -1);
        }
    }

    private void consume() {
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(
                options.kafka("client.id", options.text("who"), "auto.offset.reset", "earliest"),
                new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(Collections.singletonList(topic));
            long deadline = System.currentTimeMillis() + 60_000;
            for (int seen = 0; seen < count && System.currentTimeMillis() < deadline;) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    truth.write("consumed", "topic", record.topic(), "partition", record.partition(), "offset",
                        record.offset(), "key", record.key());
                    seen++;
                }
            }
            // an idle consumer, for as long as asked
            for (long until = System.currentTimeMillis() + options.number("stay", 0); System.currentTimeMillis() < until;) {
                consumer.poll(Duration.ofMillis(200));
            }
            consumer.commitSync();
        }
    }

    /** Many APIs once. Some are refused (no authorizer here), which is an answer too. */
    private void admin() throws Exception {
        String own = options.text("who");
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, own);
        TopicPartition first = new TopicPartition(own, 0);
        Collection<AlterConfigOp> set = Collections.singleton(
            new AlterConfigOp(new ConfigEntry("retention.ms", "60000"), AlterConfigOp.OpType.SET));
        try (Admin admin = Admin.create(options.kafka("client.id", own))) {
            ask("createTopics", () -> admin.createTopics(List.of(new NewTopic(own, 1, (short) 1))));
            ask("describeCluster", admin::describeCluster);
            ask("listTopics", admin::listTopics);
            ask("describeTopics", () -> admin.describeTopics(List.of(own, topic)));
            ask("createPartitions", () -> admin.createPartitions(Map.of(own, NewPartitions.increaseTo(2))));
            ask("describeConfigs", () -> admin.describeConfigs(List.of(resource)));
            ask("incrementalAlterConfigs", () -> admin.incrementalAlterConfigs(Map.of(resource, set)));
            ask("listOffsets", () -> admin.listOffsets(Map.of(first, OffsetSpec.latest())));
            ask("deleteRecords", () -> admin.deleteRecords(Map.of(first, RecordsToDelete.beforeOffset(0))));
            ask("describeLogDirs", () -> admin.describeLogDirs(List.of(1)));
            ask("listConsumerGroups", admin::listConsumerGroups);
            ask("describeConsumerGroups", () -> admin.describeConsumerGroups(List.of("readers-" + own)));
            ask("listConsumerGroupOffsets", () -> admin.listConsumerGroupOffsets("readers-" + own));
            ask("listPartitionReassignments", admin::listPartitionReassignments);
            ask("describeFeatures", admin::describeFeatures);
            ask("describeUserScramCredentials", admin::describeUserScramCredentials);
            ask("describeDelegationToken", admin::describeDelegationToken);
            ask("deleteTopics", () -> admin.deleteTopics(List.of(own)));
        }
    }

    private void ask(String what, Callable<Object> call) throws Exception {
        Map<String, String> outcome = new HashMap<>();
        try {
            settle(call.call());
        } catch (ExecutionException error) {
            outcome.put("error", error.getCause().getClass().getSimpleName());
        }
        truth.write("asked", "what", what, "error", outcome.get("error"));
    }

    /** Result classes name their futures differently, and differently in each release. */
    private static void settle(Object result) throws Exception {
        for (String name : List.of("all", "allTopicNames", "names", "nodes", "allDescriptions", "reassignments",
                "featureMetadata", "delegationTokens", "partitionsToOffsetAndMetadata")) {
            for (Method method : result.getClass().getMethods()) {
                if (method.getName().equals(name) && method.getParameterCount() == 0
                        && KafkaFuture.class.isAssignableFrom(method.getReturnType())) {
                    ((KafkaFuture<?>) method.invoke(result)).get(30, TimeUnit.SECONDS);
                    return;
                }
            }
        }
        throw new IllegalStateException("no future in " + result.getClass().getSimpleName());
    }
}
