"""Real Apache Kafka on loopback, programs that use it, recipes that record what happens; for tests and by hand."""
