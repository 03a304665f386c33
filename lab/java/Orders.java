import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** Lines on standard input in, an action each out, on a thread of its own; `halt` is always there. */
final class Orders {
    private Orders() {}

    static void obey(Truth truth, Map<String, Runnable> actions) {
        Thread thread = new Thread(() -> {
            BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            try {
                for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                    truth.write("told", "order", line);
                    if (line.equals("halt")) {
                        halt(truth);
                    }
                    actions.getOrDefault(line, () -> {}).run();
                }
            } catch (IOException error) {
                truth.write("failed", "error", error.toString());
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    /** A crash: no close, no shutdown hook, no word to anybody; the kernel closes the connections. */
    static void halt(Truth truth) {
        truth.write("halted");
        Runtime.getRuntime().halt(1);
    }
}
