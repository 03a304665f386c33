"""Delta tables without a JVM: layout, commits, reader views, retention."""
