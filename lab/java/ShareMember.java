import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;

/** A share group member that does with each record what `rules` say, and logs it.
 *
 *  rules=orders-0-7=release;n3=renew:2:500;n5=hang:4000;n9=halt     orders-0-7 is offset 7 of its partition 0 at every
 *  delivery, n3 the third record handed to this member. All others get the rule of `all`, which is accept unless given;
 *  work:600 takes 600 ms and accepts; renew:2:500 holds it for 500 ms and
 *  renews, twice, then accepts; hang:4000 holds the record and all behind it for 4 s, then accepts, too late; leave closes
 *  with this record and all behind it in hand. commit=poll sends acknowledgements on the next ShareFetch, sync in a
 *  ShareAcknowledge. `close` on standard input leaves in order.
 */
public class ShareMember {
    private final Truth truth;
    private final KafkaShareConsumer<String, String> consumer;
    private final Map<String, String> rules = new HashMap<>();
    /** Records being renewed: how many renewals are left. */
    private final Map<String, Integer> renewals = new HashMap<>();
    /** A record keeps the rule it was first handed out under. */
    private final Map<String, String> kept = new HashMap<>();
    private boolean leaving = false;
    private int handed = 0;

    private ShareMember(Options options) throws Exception {
        truth = new Truth(options);
        ClientLog.write(truth);
        String text = options.text("rules", "");
        for (String rule : text.isEmpty() ? new String[0] : text.split(";")) {
            String[] parts = rule.split("=");
            rules.put(parts[0], parts[1]);
        }
        consumer = new KafkaShareConsumer<>(
            options.kafka("share.acknowledgement.mode", "explicit", "client.id", options.text("who")),
            new StringDeserializer(),
            new StringDeserializer());
        consumer.setAcknowledgementCommitCallback((offsets, error) -> offsets.forEach((partition, set) -> truth.write(
            "committed", "topic", partition.topic(), "topicId", partition.topicId(), "partition", partition.partition(),
            "offsets", new TreeSet<>(set), "error", error == null ? null : error.getClass().getSimpleName())));
    }

    public static void main(String[] arguments) throws Exception {
        Options options = new Options(arguments);
        new ShareMember(options).run(options);
    }

    private void run(Options options) {
        AtomicBoolean closing = new AtomicBoolean();
        Orders.obey(truth, Map.of("close", () -> {
            closing.set(true);
            consumer.wakeup();
        }));
        consumer.subscribe(List.of(options.text("topic").split(",")));
        truth.write("started");
        boolean sync = options.text("commit", "poll").equals("sync");
        while (!closing.get() && !leaving) {
            try {
                int count = 0;
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(500))) {
                    handle(record);
                    count++;
                    if (leaving) {
                        break;
                    }
                }
                if (sync && count > 0 && !leaving) {
                    consumer.commitSync();
                }
            } catch (WakeupException woken) {
                // only `close` wakes it, and the loop's condition sees that
            }
        }
        truth.write("closing");
        consumer.close();
        truth.write("closed");
    }

    private void handle(ConsumerRecord<String, String> record) {
        String place = record.topic() + "-" + record.partition() + "-" + record.offset();
        boolean renewed = renewals.containsKey(place);
        if (!renewed) {
            handed++;
        }
        truth.write("delivered", "topic", record.topic(), "partition", record.partition(), "offset", record.offset(),
            "deliveryCount", record.deliveryCount().orElse((short) -1), "key", record.key(), "renewed", renewed,
            "lockMs", consumer.acquisitionLockTimeoutMs().orElse(-1));
        String own = rules.getOrDefault(place, rules.getOrDefault("all", "accept"));
        String rule = renewed ? kept.get(place) : rules.getOrDefault("n" + handed, own);
        String[] parts = rule.split(":");
        int figure = parts.length > 1 ? Integer.parseInt(parts[1]) : 0;
        switch (parts[0]) {
            case "halt" -> Orders.halt(truth);
            case "leave" -> leaving = true;
            case "work" -> {
                pause(figure);
                acknowledge(record, AcknowledgeType.ACCEPT);
            }
            case "hang" -> {
                truth.write("hanging", "offset", record.offset(), "ms", figure);
                pause(figure);
                acknowledge(record, AcknowledgeType.ACCEPT);
            }
            case "renew" -> {
                int left = renewals.getOrDefault(place, figure);
                if (left == 0) {
                    renewals.remove(place);
                    acknowledge(record, AcknowledgeType.ACCEPT);
                } else {
                    pause(Integer.parseInt(parts[2]));
                    kept.put(place, rule);
                    renewals.put(place, left - 1);
                    acknowledge(record, AcknowledgeType.RENEW);
                }
            }
            default -> acknowledge(record, AcknowledgeType.valueOf(parts[0].toUpperCase()));
        }
    }

    private void acknowledge(ConsumerRecord<String, String> record, AcknowledgeType type) {
        consumer.acknowledge(record, type);
        truth.write("acknowledged", "topic", record.topic(), "partition", record.partition(), "offset", record.offset(),
            "deliveryCount", record.deliveryCount().orElse((short) -1), "type", type.name());
    }

    private static void pause(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }
}
