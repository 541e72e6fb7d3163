"""Sessions: the state that the daemon keeps for a client, its connection and its deliveries."""
