import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.Configuration;
import org.apache.logging.log4j.core.config.LoggerConfig;
import org.apache.logging.log4j.core.config.Property;

/** Kafka's own client log in, lines of truth out: each heartbeat `sent` and `received` with its whole body, and each range
 *  of records `acquired`, before the application sees any of it. */
final class ClientLog extends AbstractAppender {
    private static final String LOGGER = "org.apache.kafka.clients.NetworkClient";
    private static final Pattern SENT = Pattern.compile(
        "Sending (\\w+) request with header \\w+\\(.*?apiVersion=(\\d+),.*?correlationId=(\\d+).*?\\) .*?: (\\w+Data\\(.*)",
        Pattern.DOTALL);
    private static final Pattern RECEIVED = Pattern.compile(
        "Received (\\w+) response .*?\\(.*?apiVersion=(\\d+),.*?correlationId=(\\d+).*?\\): (\\w+Data\\(.*)",
        Pattern.DOTALL);
    private static final Pattern ACQUIRED = Pattern.compile("topicId=([\\w-]+)|partitionIndex=(\\d+)"
        + "|AcquiredRecords\\(firstOffset=(\\d+), lastOffset=(\\d+), deliveryCount=(\\d+)\\)");

    private final Truth truth;

    private ClientLog(Truth truth) {
        super("truth", null, null, false, Property.EMPTY_ARRAY);
        this.truth = truth;
    }

    static void write(Truth truth) {
        LoggerContext context = (LoggerContext) LogManager.getContext(false);
        Configuration configuration = context.getConfiguration();
        ClientLog appender = new ClientLog(truth);
        appender.start();
        LoggerConfig logger = new LoggerConfig(LOGGER, Level.DEBUG, false);
        logger.addAppender(appender, Level.DEBUG, null);
        configuration.addLogger(LOGGER, logger);
        context.updateLoggers();
    }

    @Override
    public void append(LogEvent event) {
        String text = event.getMessage().getFormattedMessage();
        heartbeat("sent", SENT.matcher(text));
        Matcher received = RECEIVED.matcher(text);
        heartbeat("received", received);
        if (received.find(0) && received.group(1).equals("SHARE_FETCH")) {
            acquired(Integer.parseInt(received.group(3)), ACQUIRED.matcher(received.group(4)));
        }
    }

    private void heartbeat(String event, Matcher found) {
        if (found.find() && found.group(1).endsWith("GROUP_HEARTBEAT")) {
            truth.write(event, "api", found.group(1), "version", Integer.parseInt(found.group(2)), "correlationId",
                Integer.parseInt(found.group(3)), "body", new Reader(found.group(4)).value());
        }
    }

    private void acquired(int correlationId, Matcher found) {
        String topicId = null;
        int partition = -1;
        while (found.find()) {
            if (found.group(1) != null) {
                topicId = found.group(1);
            } else if (found.group(2) != null) {
                partition = Integer.parseInt(found.group(2));
            } else {
                truth.write("acquired", "correlationId", correlationId, "topicId", topicId, "partition", partition,
                    "firstOffset", Long.parseLong(found.group(3)), "lastOffset", Long.parseLong(found.group(4)),
                    "deliveryCount", Integer.parseInt(found.group(5)));
            }
        }
    }

    /** What `toString` of Kafka's messages wrote, `Name(field=1, other='x', list=[…])`, as maps and lists. */
    private static final class Reader {
        private final String text;
        private int at = 0;

        Reader(String text) {
            this.text = text;
        }

        Object value() {
            if (text.charAt(at) == '[') {
                return list();
            }
            if (text.charAt(at) == '\'') {
                int end = text.indexOf('\'', at + 1);
                String word = text.substring(at + 1, end);
                at = end + 1;
                return word;
            }
            int start = at;
            while ("(,)]".indexOf(text.charAt(at)) < 0) {
                at++;
            }
            return text.charAt(at) == '(' ? fields() : plain(text.substring(start, at));
        }

        private Object fields() {
            Map<String, Object> found = new LinkedHashMap<>();
            for (at++; text.charAt(at) != ')'; skip()) {
                int equals = text.indexOf('=', at);
                String name = text.substring(at, equals);
                at = equals + 1;
                found.put(name, value());
            }
            at++;
            return found;
        }

        private Object list() {
            List<Object> found = new ArrayList<>();
            for (at++; text.charAt(at) != ']'; skip()) {
                found.add(value());
            }
            at++;
            return found;
        }

        private void skip() {
            if (text.charAt(at) == ',') {
                at += 2;
            }
        }

        private static Object plain(String word) {
            return switch (word) {
                case "null" -> null;
                case "true", "false" -> Boolean.valueOf(word);
                default -> word.matches("-?\\d+") ? (Object) Long.valueOf(word) : word;
            };
        }
    }
}
