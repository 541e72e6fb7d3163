"""Audits and counts of servers that tests build."""

from dssd.clock import Clock
from dssd.events.model import unheard
from dssd.events.teller import Unheard
from dssd.limits import CONCURRENT_CALLS_MAX
from dssd.rpc.audit import Audit
from dssd.rpc.calls import Calls
from dssd.rpc.unix_peers import UnixPeers


def unaudited() -> Audit:
    """An audit whose events nobody gets."""
    return Audit(Unheard(), UnixPeers(()), Clock())


def uncounted() -> Calls:
    """Call counts of processes without names."""
    return Calls(CONCURRENT_CALLS_MAX, unheard, lambda _: None)
