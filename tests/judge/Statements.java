import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.SparkSession;

/** Runs each SQL statement of a file, one per line, on Spark with Delta; writes the rows of each as one JSON list. */
public class Statements {
    public static void main(String[] args) throws Exception {
        SparkSession spark = SparkSession.builder()
            .master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.log.level", "ERROR")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.sql.warehouse.dir", args[2])
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.databricks.delta.retentionDurationCheck.enabled", "false")
            .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
            .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
            .getOrCreate();
        List<String> told = new ArrayList<>();
        for (String statement : Files.readAllLines(Path.of(args[0]))) {
            told.add("[" + String.join(",", spark.sql(statement).toJSON().collectAsList()) + "]");
        }
        Files.write(Path.of(args[1]), told);
        spark.stop();
    }
}
