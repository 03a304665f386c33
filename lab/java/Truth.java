import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Map;

/** What a program did in, one JSON line each out, on disk before `write` returns: a halt loses none of it. */
final class Truth {
    private final BufferedWriter lines;
    private final String who;

    Truth(Options options) throws IOException {
        lines = Files.newBufferedWriter(Path.of(options.text("truth")), StandardCharsets.UTF_8);
        who = options.text("who");
    }

    /** `at` is microseconds since 1970; fields are name, value, name, value … */
    synchronized void write(String event, Object... fields) {
        StringBuilder line = new StringBuilder("{\"at\": ");
        line.append(ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now()));
        line.append(", \"who\": ").append(json(who)).append(", \"event\": ").append(json(event));
        for (int i = 0; i < fields.length; i += 2) {
            line.append(", ").append(json(fields[i])).append(": ").append(json(fields[i + 1]));
        }
        try {
            lines.write(line.append("}\n").toString());
            lines.flush();
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    private static String json(Object value) {
        if (value == null || value instanceof Number || value instanceof Boolean) {
            return String.valueOf(value);
        }
        if (value instanceof Iterable<?> items) {
            StringBuilder list = new StringBuilder();
            for (Object item : items) {
                list.append(list.isEmpty() ? "" : ", ").append(json(item));
            }
            return "[" + list + "]";
        }
        if (value instanceof Map<?, ?> map) {
            StringBuilder object = new StringBuilder();
            map.forEach((k, v) -> object.append(object.isEmpty() ? "" : ", ").append(json(k)).append(": ").append(json(v)));
            return "{" + object + "}";
        }
        StringBuilder text = new StringBuilder("\"");
        for (char c : value.toString().toCharArray()) {
            if (c == '"' || c == '\\') {
                text.append('\\').append(c);
            } else if (c < ' ') {
                text.append(String.format("\\u%04x", (int) c));
            } else {
                text.append(c);
            }
        }
        return text.append('"').toString();
    }
}
