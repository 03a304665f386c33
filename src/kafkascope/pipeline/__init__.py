"""The Spark room: recordings of any size into the lake, and from there into the marts."""
