"""Whether the data directory is still this daemon's, while it serves."""
