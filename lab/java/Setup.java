import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.config.ConfigResource;

/** `topics=NAME:PARTITIONS:REPLICAS,…` and `groups=NAME:config=value:config=value,…` in; they are there when it exits. */
public class Setup {
    public static void main(String[] arguments) throws Exception {
        Options options = new Options(arguments);
        List<NewTopic> topics = new ArrayList<>();
        for (String topic : list(options.text("topics", ""))) {
            String[] parts = topic.split(":");
            topics.add(new NewTopic(parts[0], Integer.parseInt(parts[1]), Short.parseShort(parts[2])));
        }
        Map<ConfigResource, java.util.Collection<AlterConfigOp>> configs = new HashMap<>();
        for (String group : list(options.text("groups", ""))) {
            String[] parts = group.split(":");
            List<AlterConfigOp> operations = new ArrayList<>();
            for (int i = 1; i < parts.length; i++) {
                String[] entry = parts[i].split("=");
                operations.add(new AlterConfigOp(new ConfigEntry(entry[0], entry[1]), AlterConfigOp.OpType.SET));
            }
            configs.put(new ConfigResource(ConfigResource.Type.GROUP, parts[0]), operations);
        }
        try (Admin admin = Admin.create(options.kafka("client.id", "setup"))) {
            admin.createTopics(topics).all().get();
            admin.incrementalAlterConfigs(configs).all().get();
        }
    }

    private static String[] list(String text) {
        return text.isEmpty() ? new String[0] : text.split(",");
    }
}
