"""Topics: what there is to publish to and to read from, known in memory, kept in the store."""
