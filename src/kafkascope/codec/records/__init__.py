"""Record data of every format, as Produce, Fetch and the logs have it."""
