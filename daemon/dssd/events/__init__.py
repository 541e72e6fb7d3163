"""Events for operators: what happened to records, groups and the daemon, kept in the store."""
