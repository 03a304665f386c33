import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.tools.MetadataQuorumCommand;

/** Kafka's own `kafka-metadata-quorum.sh describe` run in this JVM: what it printed is a line of truth. */
final class QuorumTool {
    static final String CLIENT_ID = "quorum-tool";

    private final Truth truth;
    private final String bootstrap;
    private final Path settings;
    private int status;

    QuorumTool(Options options, Truth truth) throws IOException {
        this.truth = truth;
        Properties client = options.kafka();
        bootstrap = client.getProperty("bootstrap.servers");
        client.put("client.id", CLIENT_ID);
        // a frozen node does not answer: give up soon and ask another
        client.put("request.timeout.ms", "700");
        client.put("default.api.timeout.ms", "3000");
        settings = Files.createTempFile(Path.of(options.text("truth")).getParent(), CLIENT_ID, ".properties");
        try (Writer writer = Files.newBufferedWriter(settings)) {
            client.store(writer, null);
        }
        Exit.setExitProcedure((code, message) -> status = code);
    }

    /** `what` is --status or --replication. */
    void describe(String what) {
        PrintStream out = System.out;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        truth.write("printing", "command", what);
        try (PrintStream caught = new PrintStream(printed, true, StandardCharsets.UTF_8)) {
            System.setOut(caught);
            MetadataQuorumCommand.main(
                "--bootstrap-server", bootstrap, "--command-config", settings.toString(), "describe", what);
        } finally {
            System.setOut(out);
        }
        List<String> lines = printed.toString(StandardCharsets.UTF_8).lines().map(String::strip)
            .filter(line -> !line.isEmpty()).toList();
        truth.write("printed", "command", what, "status", status, "lines", lines);
    }
}
