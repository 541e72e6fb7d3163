"""The parameters of a job, as its driver reads them.

Whoever makes a job writes them, so they may be anything. Invariant: a driver has parameters as its
tool writes them, or refuses the job with a condition.
"""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from dss_core.errors import IllegalJob

UNREADABLE = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    zlib.error,
)


@contextmanager
def params_of(kind: str, made_by: str) -> Iterator[None]:
    """Read the parameters of a job of this kind.

    Raises:
        IllegalJob: they are something else.
    """
    try:
        yield
    except UNREADABLE as wrong:
        rule = f"its parameters are none of {kind}; it is made by dssctl {made_by}"
        raise IllegalJob(job="of these parameters", rule=rule) from wrong
