"""What passes by itself: conditions under which asking again later is right."""

from dss_core.errors.bounds import Overloaded
from dss_core.errors.service import (
    DiskFailed,
    LogUnreadable,
    OutcomeUnknown,
    Stopping,
    TimedOut,
    Unreachable,
)

PASSING = (Unreachable, Stopping, OutcomeUnknown, Overloaded, DiskFailed, LogUnreadable, TimedOut)
"""Of the daemon, or of the way to it."""
