import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** HDFS with a name node and a data node on loopback, until the end of standard input. The argument is a folder for their
 *  disks; the address of the name node's HTTP interface is a line of the output. */
public class MiniHdfs {
    private MiniHdfs() {}

    public static void main(String[] arguments) throws Exception {
        Configuration settings = new HdfsConfiguration();
        settings.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, arguments[0]);
        settings.setInt("dfs.replication", 1);
        try (MiniDFSCluster cluster = new MiniDFSCluster.Builder(settings).numDataNodes(1).build()) {
            cluster.waitActive();
            System.out.println("listening " + cluster.getHttpUri(0));
            while (System.in.read() >= 0) {
                continue;
            }
        }
    }
}
