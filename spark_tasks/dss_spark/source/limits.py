"""Bounds of the data source that several modules take, with units last and reasons."""

AWAY_S = 60.0
"""How long a daemon may be away, for a restart, while records are read or a batch is planned."""
