import java.util.HashMap;
import java.util.Map;
import java.util.Properties;

/** Arguments `name=value` in, options out; those that begin with `kafka.` are the client's own properties. */
final class Options {
    private final Map<String, String> values = new HashMap<>();
    private final Properties kafka = new Properties();

    Options(String[] arguments) {
        for (String argument : arguments) {
            int at = argument.indexOf('=');
            String name = argument.substring(0, at);
            String value = argument.substring(at + 1);
            if (name.startsWith("kafka.")) {
                kafka.put(name.substring("kafka.".length()), value);
            } else {
                values.put(name, value);
            }
        }
    }

    String text(String name) {
        if (!values.containsKey(name)) {
            throw new IllegalArgumentException("option " + name + " is missing");
        }
        return values.get(name);
    }

    String text(String name, String otherwise) {
        return values.getOrDefault(name, otherwise);
    }

    int number(String name, int otherwise) {
        return values.containsKey(name) ? Integer.parseInt(values.get(name)) : otherwise;
    }

    /** The client's properties, with these for what was not given. */
    Properties kafka(String... defaults) {
        Properties all = new Properties();
        for (int i = 0; i < defaults.length; i += 2) {
            all.put(defaults[i], defaults[i + 1]);
        }
        all.putAll(kafka);
        return all;
    }
}
