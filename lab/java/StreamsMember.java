import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.TaskMetadata;
import org.apache.kafka.streams.ThreadMetadata;
import org.apache.kafka.streams.kstream.KStream;

/** A streams group member with two sub-topologies, both with state, that logs the tasks it holds whenever they change.
 *  `close` on standard input leaves the group, `halt` crashes. */
public class StreamsMember {
    private static final long LOOK_MS = 20;

    public static void main(String[] arguments) throws Exception {
        Options options = new Options(arguments);
        Truth truth = new Truth(options);
        ClientLog.write(truth);
        String serde = Serdes.String().getClass().getName();
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> input = builder.stream(options.text("topic"));
        input.groupByKey().count().toStream().mapValues(String::valueOf).to(options.text("output"));
        // another key needs a repartition topic, and so a second sub-topology
        input.selectKey((key, value) -> value).groupByKey().count();
        KafkaStreams streams = new KafkaStreams(builder.build(), options.kafka(
            "group.protocol", "streams", "client.id", options.text("who"), "num.stream.threads", "1",
            "commit.interval.ms", "500", "default.key.serde", serde, "default.value.serde", serde));
        streams.setStateListener((now, before) -> truth.write("state", "from", before.name(), "to", now.name()));
        CountDownLatch done = new CountDownLatch(1);
        Orders.obey(truth, Map.of("close", done::countDown));
        ScheduledExecutorService looks = Executors.newSingleThreadScheduledExecutor();
        truth.write("started");
        streams.start();
        String[] last = {""};
        looks.scheduleWithFixedDelay(() -> {
            Set<String> active = new TreeSet<>();
            Set<String> standby = new TreeSet<>();
            for (ThreadMetadata thread : streams.metadataForLocalThreads()) {
                thread.activeTasks().forEach(task -> active.add(name(task)));
                thread.standbyTasks().forEach(task -> standby.add(name(task)));
            }
            String held = active + " " + standby;
            if (!held.equals(last[0])) {
                last[0] = held;
                truth.write("holds", "active", active, "standby", standby);
            }
        }, 0, LOOK_MS, TimeUnit.MILLISECONDS);
        done.await();
        looks.shutdown();
        truth.write("closing");
        streams.close(CloseOptions.groupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP)
            .withTimeout(Duration.ofSeconds(30)));
        truth.write("closed");
    }

    private static String name(TaskMetadata task) {
        return task.taskId().toString();
    }
}
