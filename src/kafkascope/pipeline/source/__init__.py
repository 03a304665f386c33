"""What `spark.read.format("kafkascope")` and `spark.readStream` read: recordings, and tables of a lake."""
