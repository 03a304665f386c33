"""Splits streams into Kafka frames, and recognizes the connections that are Kafka."""
