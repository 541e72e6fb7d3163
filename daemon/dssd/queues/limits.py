"""Bounds of the work on queues. Units last, with reasons."""

SLICE_BYTES = 64 << 10
"""Frames that are decoded at a time: some hundred small records, a fraction of a millisecond."""
