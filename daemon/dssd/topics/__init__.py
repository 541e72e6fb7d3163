"""Topics: stored in the store, answered from memory."""
