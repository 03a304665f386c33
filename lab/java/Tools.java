import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/** Kafka's own command line tools, one after another in this JVM: a line on standard input is a class and its arguments,
 *  apart by tabs; what it printed is a line of truth. The end of the input, or `close`, ends it. */
public class Tools {
    private static int status;

    private Tools() {}

    public static void main(String[] arguments) throws Exception {
        Truth truth = new Truth(new Options(arguments));
        Exit.setExitProcedure((code, message) -> status = code);
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        truth.write("started");
        int number = 0;
        for (String line = orders.readLine(); line != null && !line.equals("close"); line = orders.readLine()) {
            String[] words = line.split("\t");
            List<String> printed = run(words[0], Arrays.copyOfRange(words, 1, words.length));
            truth.write("printed", "number", number++, "status", status, "lines", printed);
        }
        truth.write("closed");
    }

    private static List<String> run(String tool, String[] arguments) throws ReflectiveOperationException {
        PrintStream out = System.out;
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        status = 0;
        try (PrintStream caught = new PrintStream(bytes, true, StandardCharsets.UTF_8)) {
            System.setOut(caught);
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException error) {
            status = -1;
            System.err.println(error.getCause());
        } finally {
            System.setOut(out);
        }
        return bytes.toString(StandardCharsets.UTF_8).lines().map(String::strip).filter(line -> !line.isEmpty()).toList();
    }
}
