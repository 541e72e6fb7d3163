"""Hypothesis runs the same examples each time, and says what to reproduce on failure."""

from hypothesis import settings

settings.register_profile("dss", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("dss")
