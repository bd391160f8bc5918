"""What was: the last hour of a node or a cluster, kept in memory as changes from one moment to the next."""
