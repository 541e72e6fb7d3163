"""Topics: what can be published to and read from; kept in the store, answered from memory."""
