"""The KRaft quorum: leaders, elections, replicas and their lag."""
