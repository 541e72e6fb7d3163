"""Who may do what: the principals that the daemon knows, and their permissions."""
