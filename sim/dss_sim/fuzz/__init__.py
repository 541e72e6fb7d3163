"""Fuzzing by time of all that reads what others wrote: bytes of the network, files, texts."""
