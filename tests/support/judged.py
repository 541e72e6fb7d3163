"""What a judge of the simulators is expected to find."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dss_sim.groups.violation import Violation


@contextmanager
def broken(invariant: str) -> Iterator[None]:
    """This invariant is found to be broken within."""
    with pytest.raises(Violation) as raised:
        yield
    assert raised.value.invariant == invariant
