"""How much of a proof runs: a sample that takes seconds, or all of it.

`make test` runs samples; `make proof` sets `DSS_PROOF=full` and runs everything. Invariant: a
sample is a part of the full proof, so what the sample finds the proof finds too.
"""

import os
from typing import TypeVar

import pytest

T = TypeVar("T")

FULL = os.environ.get("DSS_PROOF") == "full"


def share(sample: T, full: T) -> T:
    """The one of the two that this run is for."""
    return full if FULL else sample


only_in_proof = pytest.mark.skipif(not FULL, reason="it is part of make proof")
"""Marks a test that costs too much for a sample."""
