"""Control state: rows with versions, committed with preconditions. Records are never in it."""
