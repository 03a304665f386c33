"""What `kafkascope check` can look at, by its first argument."""

ALL = "all"
WHAT = ("quorum", "share-group", "streams-group", "group", ALL)
