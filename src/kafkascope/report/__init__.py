"""Reports on the health of the clusters in a lake: one HTML page and one JSON document, made from marts without a
JVM."""
