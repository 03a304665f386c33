import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.QuorumInfo;
import org.apache.kafka.clients.admin.ShareGroupDescription;
import org.apache.kafka.clients.admin.StreamsGroupDescription;
import org.apache.kafka.clients.admin.StreamsGroupMemberAssignment;
import org.apache.kafka.common.Node;

/** Asks again and again, and logs the answers: what=quorum, what=share or what=streams with group=NAME,
 *  what=leaders with topic=NAME. With churn=5 every fifth round creates a topic, so that the metadata log grows. With
 *  tool=2 every second round also runs Kafka's own quorum tool, one of its two commands after the other. `close` on
 *  standard input ends it. */
public class Watch {
    private final Truth truth;
    private final Options options;

    private Watch(Options options) throws Exception {
        this.options = options;
        truth = new Truth(options);
    }

    public static void main(String[] arguments) throws Exception {
        new Watch(new Options(arguments)).run();
    }

    private void run() throws Exception {
        AtomicBoolean closing = new AtomicBoolean();
        Orders.obey(truth, Map.of("close", () -> closing.set(true)));
        // a frozen node does not answer: give up soon and ask another
        try (Admin admin = Admin.create(options.kafka("client.id", options.text("who"), "default.api.timeout.ms", "3000",
                "request.timeout.ms", "700", "reconnect.backoff.max.ms", "200"))) {
            truth.write("started");
            int churn = options.number("churn", 0);
            int often = options.number("tool", 0);
            QuorumTool tool = often > 0 ? new QuorumTool(options, truth) : null;
            for (int round = 1; !closing.get(); round++) {
                try {
                    ask(admin);
                    if (often > 0 && round % often == 0) {
                        tool.describe(round / often % 2 == 0 ? "--status" : "--replication");
                    }
                    if (churn > 0 && round % churn == 0) {
                        String topic = "churn-" + round;
                        admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
                        truth.write("created", "topic", topic);
                    }
                } catch (ExecutionException error) {
                    truth.write("refused", "error", error.getCause().getClass().getSimpleName());
                }
                Thread.sleep(options.number("every", 500));
            }
        }
        truth.write("closed");
    }

    private void ask(Admin admin) throws ExecutionException, InterruptedException {
        switch (options.text("what")) {
            case "quorum" -> quorum(admin.describeMetadataQuorum().quorumInfo().get());
            case "share" -> share(admin);
            case "streams" -> streams(admin);
            case "leaders" -> leaders(admin);
            default -> throw new IllegalArgumentException(options.text("what"));
        }
    }

    private void quorum(QuorumInfo info) {
        truth.write("quorum", "leader", info.leaderId(), "epoch", info.leaderEpoch(), "highWatermark",
            info.highWatermark(), "voters", replicas(info.voters()), "observers", replicas(info.observers()));
    }

    private static List<Object> replicas(List<QuorumInfo.ReplicaState> states) {
        List<Object> list = new ArrayList<>();
        for (QuorumInfo.ReplicaState state : states) {
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("id", state.replicaId());
            one.put("logEndOffset", state.logEndOffset());
            one.put("lastFetch", state.lastFetchTimestamp().orElse(-1));
            one.put("lastCaughtUp", state.lastCaughtUpTimestamp().orElse(-1));
            list.add(one);
        }
        return list;
    }

    private void leaders(Admin admin) throws ExecutionException, InterruptedException {
        String topic = options.text("topic");
        Map<String, Object> leaders = new LinkedHashMap<>();
        Map<String, Object> inSync = new LinkedHashMap<>();
        admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().forEach(partition -> {
            String place = topic + "-" + partition.partition();
            leaders.put(place, partition.leader() == null ? -1 : partition.leader().id());
            inSync.put(place, partition.isr().stream().map(Node::id).sorted().toList());
        });
        truth.write("leaders", "leaders", leaders, "inSync", inSync);
    }

    private void share(Admin admin) throws ExecutionException, InterruptedException {
        String group = options.text("group");
        ShareGroupDescription told = admin.describeShareGroups(List.of(group)).all().get().get(group);
        Map<String, Object> members = new LinkedHashMap<>();
        told.members().forEach(member -> members.put(member.consumerId(), member.clientId()));
        Map<String, Object> offsets = new LinkedHashMap<>();
        admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec())).all().get().get(group)
            .forEach((partition, info) -> offsets.put(partition.toString(), info == null ? null
                : List.of(info.startOffset(), info.lag().orElse(-1L))));
        truth.write("group", "state", told.groupState().toString(), "epoch", told.groupEpoch(), "members", members,
            "startOffsetAndLag", offsets);
    }

    private void streams(Admin admin) throws ExecutionException, InterruptedException {
        String group = options.text("group");
        StreamsGroupDescription told = admin.describeStreamsGroups(List.of(group)).all().get().get(group);
        List<Object> members = new ArrayList<>();
        told.members().forEach(member -> {
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("memberId", member.memberId());
            one.put("clientId", member.clientId());
            one.put("epoch", member.memberEpoch());
            one.put("active", tasks(member.assignment().activeTasks()));
            one.put("standby", tasks(member.assignment().standbyTasks()));
            one.put("targetActive", tasks(member.targetAssignment().activeTasks()));
            one.put("targetStandby", tasks(member.targetAssignment().standbyTasks()));
            members.add(one);
        });
        truth.write("group", "state", told.groupState().toString(), "epoch", told.groupEpoch(), "targetEpoch",
            told.targetAssignmentEpoch(), "members", members);
    }

    private static List<String> tasks(List<StreamsGroupMemberAssignment.TaskIds> ids) {
        List<String> names = new ArrayList<>();
        ids.forEach(id -> id.partitions().forEach(partition -> names.add(id.subtopologyId() + "_" + partition)));
        names.sort(null);
        return names;
    }
}
