"""The Spark source `kafkascope-share`: a share group's records as a stream that replays exactly."""
