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
"""Of the daemon, or of the way to it. Whose login ended asks again, and hears whether that is for
good; a certificate that has expired is renewed by somebody."""
