"""Audits of servers that tests build."""

from dssd.clock import Clock
from dssd.events.model import unheard
from dssd.rpc.audit import Audit
from dssd.rpc.unix_peers import UnixPeers


def unaudited() -> Audit:
    """One that nobody hears."""
    return Audit(unheard, UnixPeers(()), Clock())
