"""How much of a proof runs: a sample that takes seconds, or all of it.

`make test` runs samples; `make proof` sets `DSS_PROOF=full` and runs everything. Invariant: a
sample is a part of the full proof, so the proof finds everything that the sample finds.
"""

import os
from typing import TypeVar

import pytest

T = TypeVar("T")

FULL = os.environ.get("DSS_PROOF") == "full"


def share(sample: T, full: T) -> T:
    """The value for this run: of a sample, or of the full proof."""
    return full if FULL else sample


only_in_proof = pytest.mark.skipif(not FULL, reason="it is part of make proof")
"""Marks a test that costs too much for a sample."""
