"""Views of a live cluster, one file a view: answers of brokers in, a frozen value out that says what it lacks."""
