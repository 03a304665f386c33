"""What brokers wrote to their own disks: the history of metadata and of share state. Pure."""
