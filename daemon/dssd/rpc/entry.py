"""The way into one server: what is between it and the network, who its callers are, what they may.

Invariant: a server has one of these, from its first connection to its last.
"""

from dataclasses import dataclass

import grpc

from dssd.access.access import Access
from dssd.addresses import Clients, Policy
from dssd.rpc.certificates import Certificates
from dssd.rpc.logins import ByTransport, Logins, logins_of
from dssd.rpc.permits import Permits


@dataclass(frozen=True, slots=True)
class Entry:
    """How one is."""

    logins: Logins
    permits: Permits | None = None
    credentials: grpc.ServerCredentials | None = None
    """None: no TLS."""


OPEN_TO_ALL = Entry(ByTransport())
"""For whoever reaches the address."""


@dataclass(frozen=True, slots=True)
class Entries:
    """What the ways into one daemon are made of."""

    access: Access
    permits: Permits
    certificates: Certificates | None

    def of(self, policy: Policy) -> Entry:
        """The way in at listeners of this policy."""
        logins = logins_of(policy, self.access)
        if not policy.tls:
            return Entry(logins, self.permits)
        assert self.certificates is not None, "a configuration with TLS has files for it"
        with_clients = policy.clients is Clients.CERTS
        return Entry(logins, self.permits, self.certificates.credentials(with_clients=with_clients))
