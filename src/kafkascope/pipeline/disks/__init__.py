"""Log directories of brokers, on this machine or in an object store: which files, in which parts, and their rows."""
