"""The bounds of what is measured, with their reasons."""

LOOP_LOOK_S = 0.1
"""How often it is looked how late the loop is: a hold of 100 ms is seen, and it costs nothing."""

LATENCY_BOUNDS_S = (
    0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
)  # fmt: skip
"""Into which buckets times are counted: from what memory takes to what a disk takes that is about
to fail."""
