import java.io.FileReader;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;

/** Files of client settings in; for each the cluster's id out, as Java's own client gets it with that file. */
public class Reach {
    public static void main(String[] files) throws Exception {
        for (String file : files) {
            Properties settings = new Properties();
            try (FileReader reader = new FileReader(file)) {
                settings.load(reader);
            }
            try (Admin admin = Admin.create(settings)) {
                System.out.println(admin.describeCluster().clusterId().get(60, TimeUnit.SECONDS));
            }
        }
    }
}
