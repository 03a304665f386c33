import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;
import java.util.Properties;
import java.util.Scanner;
import java.util.TreeMap;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.JaasContext;

/** Lines `properties BASE64` or `jaas BASE64` in; for each a line of what Java reads out, or `refused`. */
public class Judge {
    public static void main(String[] arguments) throws Exception {
        Scanner lines = new Scanner(System.in, StandardCharsets.UTF_8);
        while (lines.hasNextLine()) {
            String[] parts = lines.nextLine().split(" ", -1);
            String text = new String(Base64.getDecoder().decode(parts[1]), StandardCharsets.UTF_8);
            System.out.println(parts[0].equals("jaas") ? jaas(text) : properties(text));
        }
    }

    private static String properties(String text) throws Exception {
        Properties found = new Properties();
        try {
            found.load(new StringReader(text));
        } catch (IllegalArgumentException refused) {
            return "refused";
        }
        Map<String, String> sorted = new TreeMap<>();
        found.stringPropertyNames().forEach(name -> sorted.put(name, found.getProperty(name)));
        return shown(sorted);
    }

    private static String jaas(String text) {
        try {
            JaasContext context = JaasContext.loadClientContext(Map.of("sasl.jaas.config", new Password(text)));
            AppConfigurationEntry entry = context.configurationEntries().get(0);
            Map<String, String> sorted = new TreeMap<>();
            entry.getOptions().forEach((name, value) -> sorted.put(name, String.valueOf(value)));
            return shown(sorted);
        } catch (RuntimeException refused) {
            return "refused";
        }
    }

    private static String shown(Map<String, String> values) {
        StringBuilder out = new StringBuilder("read");
        values.remove("");
        values.forEach((name, value) -> out.append(' ').append(encoded(name)).append('=').append(encoded(value)));
        return out.toString();
    }

    private static String encoded(String text) {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }
}
