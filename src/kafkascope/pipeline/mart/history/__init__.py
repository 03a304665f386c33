"""The marts of streams groups and quorums: the events of each group or cluster, walked in time order."""
