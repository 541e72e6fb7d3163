"""Which records of a stream an operator reopened although they wait in a queue.

Invariant: a record of an earlier storage topic has an origin below zero, so it is no record of this
stream. This module does not know what becomes of reopened records.
"""

from collections.abc import Sequence

from dss_core.progress import Progress, Ranges, normalised
from dssd.machines.delivery.events import Entry


def reopened_of(entries: Sequence[Entry], queue: Progress, main: Progress) -> Ranges:
    """The origins of unsettled entries of a queue that are unacknowledged in the stream too."""
    origins = [each.origin for each in entries if each.origin >= 0]
    if not origins or main.is_acked_all(min(origins), max(origins) + 1):
        return ()
    return normalised(
        (each.origin, each.origin + 1)
        for each in entries
        if each.origin >= 0 and not queue.is_acked(each.offset) and not main.is_acked(each.origin)
    )
