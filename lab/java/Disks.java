import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Fills the disks of a cluster with every kind of batch and metadata record that clients can cause. Timestamps are set
 *  an hour apart, so that segments roll when the broker sees them and not when a clock says so. At the end it halts with
 *  a transaction open. */
public class Disks {
    private static final long HOUR = 3_600_000L;
    private static final long START = 1_767_268_800_000L;
    private final Options options;
    private final Truth truth;

    private Disks(Options options) throws Exception {
        this.options = options;
        truth = new Truth(options);
    }

    public static void main(String[] arguments) throws Exception {
        Disks disks = new Disks(new Options(arguments));
        disks.describe();
        disks.fill();
        disks.truth.write("filled");
        disks.leaveOpen();
        disks.truth.write("open");
        Runtime.getRuntime().halt(0);
    }

    private void describe() throws Exception {
        short copies = (short) options.number("copies", 1);
        Map<String, String> old = Map.of("index.interval.bytes", "512", "segment.ms", String.valueOf(HOUR));
        Map<String, String> small = new HashMap<>(old);
        small.put("retention.ms", "-1");
        Map<String, String> compact = new HashMap<>(small);
        compact.putAll(Map.of("cleanup.policy", "compact", "min.cleanable.dirty.ratio", "0.001"));
        Map<String, String> appended = new HashMap<>(small);
        appended.put("message.timestamp.type", "LogAppendTime");
        List<NewTopic> topics = List.of(
            new NewTopic("packed", 1, copies).configs(small), new NewTopic("compacted", 1, copies).configs(compact),
            new NewTopic("ledger", 2, copies).configs(small), new NewTopic("appended", 1, copies).configs(appended),
            new NewTopic("trimmed", 1, copies).configs(old), new NewTopic("doomed", 1, copies),
            new NewTopic("orders-eu.1", 1, copies), new NewTopic("words", 1, copies), new NewTopic("counts", 1, copies));
        try (Admin admin = Admin.create(options.kafka("client.id", "disks"))) {
            admin.createTopics(topics).all().get();
            admin.createAcls(List.of(new AclBinding(
                new ResourcePattern(ResourceType.TOPIC, "orders-", PatternType.PREFIXED),
                new AccessControlEntry("User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW)))).all().get();
            admin.alterClientQuotas(List.of(new ClientQuotaAlteration(
                new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, "alice")),
                List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1e6))))).all().get();
            admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion(
                "carol", new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), "carol-secret"))).all().get();
            configure(admin, ConfigResource.Type.BROKER, "1", "plugin.secret", "store-secret");
            configure(admin, ConfigResource.Type.BROKER, "", "background.threads", "4");
            configure(admin, ConfigResource.Type.TOPIC, "orders-eu.1", "retention.ms", "86400000");
            for (String group : List.of("processors")) {
                configure(admin, ConfigResource.Type.GROUP, group, "share.auto.offset.reset", "earliest");
            }
        }
        Properties login = options.kafka("client.id", "disks-token");
        if (login.containsKey("token.sasl.jaas.config")) {
            for (String name : List.of("bootstrap.servers", "security.protocol", "sasl.mechanism", "sasl.jaas.config")) {
                login.put(name, login.get("token." + name));
            }
            try (Admin admin = Admin.create(login)) {
                admin.createDelegationToken().delegationToken().get();
            }
        }
        truth.write("described");
    }

    private void configure(Admin admin, ConfigResource.Type type, String name, String key, String value) {
        try {
            admin.incrementalAlterConfigs(Map.of(new ConfigResource(type, name),
                List.of(new AlterConfigOp(new ConfigEntry(key, value), AlterConfigOp.OpType.SET)))).all().get();
        } catch (Exception error) {
            truth.write("refused", "config", key, "error", String.valueOf(error.getMessage()));
        }
    }

    private void fill() throws Exception {
        for (String packing : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            try (KafkaProducer<byte[], byte[]> producer = producer("compression.type", packing)) {
                send(producer, "packed", 0, 40, packing, false);
                send(producer, "packed", 0, 40, packing, true);
                send(producer, "appended", 0, 10, packing, false);
            }
        }
        try (KafkaProducer<byte[], byte[]> producer = producer("enable.idempotence", "false", "acks", "1")) {
            send(producer, "packed", 0, 10, "plain", true);
            send(producer, "trimmed", 0, 60, "trimmed", true);
            send(producer, "doomed", 0, 5, "doomed", false);
            send(producer, "orders-eu.1", 0, 20, "orders", false);
            for (int round = 0; round < 4; round++) {
                for (int key = 0; key < 12; key++) {
                    boolean gone = round == 2 && key < 3;
                    byte[] value = gone ? null : ("round " + round).repeat(9).getBytes();
                    producer.send(new ProducerRecord<>("compacted", 0, START + round * 2 * HOUR + key, ("k" + key).getBytes(), value));
                    producer.flush();
                }
            }
        }
        for (int number = 0; number < 3; number++) {
            try (KafkaProducer<byte[], byte[]> producer = producer("transactional.id", "ledger-" + number)) {
                producer.initTransactions();
                for (int round = 0; round < 4; round++) {
                    producer.beginTransaction();
                    for (int partition = 0; partition < 2; partition++) {
                        send(producer, "ledger", partition, 5, "entry", round == 3);
                    }
                    if (round % 2 == 0) {
                        producer.sendOffsetsToTransaction(
                            Map.of(new TopicPartition("packed", 0), new OffsetAndMetadata(round, Optional.of(0), "at " + round)),
                            new ConsumerGroupMetadata("ledger-readers"));
                        producer.commitTransaction();
                    } else {
                        producer.flush();
                        producer.abortTransaction();
                    }
                }
            }
        }
        try (Admin admin = Admin.create(options.kafka("client.id", "disks"))) {
            admin.deleteRecords(Map.of(new TopicPartition("trimmed", 0), RecordsToDelete.beforeOffset(33))).all().get();
            admin.deleteTopics(List.of("doomed")).all().get();
        }
    }

    /** A transaction that nobody ends: its producer is gone, its timeout is an hour away. */
    private void leaveOpen() throws Exception {
        KafkaProducer<byte[], byte[]> producer = producer("transactional.id", "hanging", "transaction.timeout.ms", "900000");
        producer.initTransactions();
        producer.beginTransaction();
        send(producer, "ledger", 0, 3, "hanging", false);
        send(producer, "orders-eu.1", 0, 3, "hanging", false);
    }

    private KafkaProducer<byte[], byte[]> producer(String... settings) {
        Properties all = options.kafka("client.id", options.text("who"), "linger.ms", "20", "batch.size", "600");
        for (int i = 0; i < settings.length; i += 2) {
            all.put(settings[i], settings[i + 1]);
        }
        return new KafkaProducer<>(all, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private void send(KafkaProducer<byte[], byte[]> producer, String topic, int partition, int count, String text, boolean later)
            throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            long at = START + (later ? 2 * HOUR + i * HOUR / 16 : i);
            byte[] key = i % 7 == 0 ? null : i % 7 == 1 ? new byte[0] : ("key-" + i).getBytes();
            byte[] value = i % 11 == 10 ? null : (text + " value " + i).repeat(1 + i % 5).getBytes();
            ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(topic, partition, at, key, value);
            if (i % 3 == 0) {
                record.headers().add(new RecordHeader("trace", ("t-" + i).getBytes()));
                record.headers().add(new RecordHeader("none", (byte[]) null));
            }
            sent.add(producer.send(record));
        }
        producer.flush();
        for (Future<RecordMetadata> one : sent) {
            one.get();
        }
    }
}
