"""Tables of the lake in, answers out: a file a subject, on the JVM wherever Spark can say it."""
