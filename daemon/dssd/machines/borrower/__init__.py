"""A session's part in one group, under either protocol."""
