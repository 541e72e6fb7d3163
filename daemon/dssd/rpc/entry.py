"""The parts between the network and one server: logins, permissions, limits of calls and
connections.

Invariant: a server has one `Entry`, from its first connection to its last.
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
    """The configuration of one entry."""

    logins: Logins
    permits: Permits | None = None
    credentials: grpc.ServerCredentials | None = None
    """None: no TLS."""


OPEN_TO_ALL = Entry(ByTransport())
"""The policy without logins: any caller that reaches the address."""


@dataclass(frozen=True, slots=True)
class Entries:
    """Makes the entries of one daemon."""

    access: Access
    permits: Permits
    certificates: Certificates | None

    def of(self, policy: Policy) -> Entry:
        """The entry of listeners with this policy."""
        logins = logins_of(policy, self.access)
        if not policy.tls:
            return Entry(logins, self.permits)
        assert self.certificates is not None, "a configuration with TLS has files for it"
        with_clients = policy.clients is Clients.CERTS
        return Entry(logins, self.permits, self.certificates.credentials(with_clients=with_clients))
