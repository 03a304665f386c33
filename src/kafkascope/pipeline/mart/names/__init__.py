"""Names and addresses: what every walk needs to know of a lake, and the marts of topics, groups and brokers."""
