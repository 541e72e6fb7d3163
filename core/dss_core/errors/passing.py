"""What passes by itself: conditions under which asking again later is right."""

from dss_core.errors.bounds import Overloaded
from dss_core.errors.service import (
    DaemonNotTrusted,
    DiskFailed,
    LoginEnded,
    LogUnreadable,
    OutcomeUnknown,
    Stopping,
    TimedOut,
    Unreachable,
)

PASSING = (
    *(Unreachable, Stopping, OutcomeUnknown, Overloaded, DiskFailed, LogUnreadable, TimedOut),
    *(LoginEnded, DaemonNotTrusted),
)
"""Conditions of the daemon, or of the connection to it. A caller whose login ended asks again and
learns whether it is still allowed; an expired certificate may be renewed meanwhile."""
