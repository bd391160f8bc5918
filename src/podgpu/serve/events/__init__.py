"""Server-sent events: a full document, then its changes, for any number of readers at the cost of one."""
