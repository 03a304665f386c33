"""Streams split into Kafka frames, and what speaks Kafka at all."""
