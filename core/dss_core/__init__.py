"""What every part of DSS must agree on: frames, routing, filters, ids, limits, error codes.

Invariant: pure. Nothing here does I/O, reads a clock or draws a random number.
"""
