"""The bounds of what is measured, with their reasons."""

LOOP_LOOK_S = 0.1
"""How often the delay of the loop is sampled: often enough to see a block of 100 ms, and at no
cost."""

LATENCY_BOUNDS_S = (
    0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
)  # fmt: skip
"""Bucket bounds: from the time of a memory access to that of a failing disk."""
