import java.util.ArrayList;
import java.util.List;
import kafka.tools.StorageTool;

/** Arguments of several `StorageTool format` runs, apart by "--", in; formatted folders out. One JVM for all of them. */
public class Format {
    public static void main(String[] arguments) {
        List<String> run = new ArrayList<>();
        for (String argument : arguments) {
            if (!argument.equals("--")) {
                run.add(argument);
                continue;
            }
            format(run);
            run.clear();
        }
        format(run);
    }

    private static void format(List<String> run) {
        int status = StorageTool.execute(run.toArray(new String[0]), System.out);
        if (status != 0) {
            System.exit(status);
        }
    }
}
