"""Failures of frames that nobody awaited: kept for the next flush, up to a bound.

Invariant: each failure is reported once, by itself or in the count of those that were not kept.
"""

from dss_core.counted import counted
from dss_core.errors import DssError

FAILURES_KEPT_MAX = 100
"""How many failures of a producer are kept; further ones are counted."""


class UntoldFailures:
    """Failures since the last report."""

    def __init__(self) -> None:
        self._kept: list[DssError] = []
        self._count = 0

    def add(self, error: DssError) -> None:
        """A frame failed."""
        self._count += 1
        if len(self._kept) < FAILURES_KEPT_MAX:
            self._kept.append(error)

    def tell(self) -> None:
        """Forget all failures, and raise the first.

        Raises:
            DssError: the first failure, if there is any.
        """
        kept, more = self._kept, self._count - 1
        self._kept, self._count = [], 0
        if kept:
            if more:
                kept[0].add_note(f"{counted(more, 'further frame')} failed.")
            raise kept[0]
