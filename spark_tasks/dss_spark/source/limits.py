"""Every bound of the data source, with its unit last and its reason."""

AWAY_S = 60.0
"""How long a daemon may be away, for a restart, while records are read or a batch is planned."""

AGAIN_S = 0.5
"""Between two tries to reach it."""
