"""Checks while the daemon serves that the data directory is still its own."""
