"""Sessions: what the daemon keeps for a consumer, with its connection and its delivery."""
