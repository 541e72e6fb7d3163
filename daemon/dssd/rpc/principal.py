"""Who calls, and which role each method asks for.

The guard notes who calls (`dssd.rpc.logins` finds it out), so that what serves the call can ask.

Where a listener has no policy, the transport says it. Only the daemon's own user (and root) can
reach a unix socket in a directory of mode 0700, so its callers are that user. TCP without a policy
is loopback only, and every user of the machine can reach it: its callers are one principal without
a name. Both may do everything, because the socket's directory and the loopback rule restrict
access; other transports have no principal and are denied.
"""

import getpass
from collections.abc import Hashable
from contextvars import ContextVar
from functools import cache
from typing import Protocol

from dss_core.errors import PermissionDenied
from dssd.access.access import LOCAL_KIND, LOOPBACK, Login
from dssd.access.permissions import ALL_ROLES, Principal, Role

METHOD_ROLES: dict[str, Role] = {
    "/dss_api.v1.Daemon/Status": Role.READ,
    "/dss_api.v1.Daemon/Findings": Role.READ,
    "/dss_api.v1.Events/List": Role.READ,
    "/dss_api.v1.Events/Watch": Role.READ,
    "/dss_api.v1.Topics/Create": Role.OPERATE,
    "/dss_api.v1.Topics/List": Role.READ,
    "/dss_api.v1.Topics/Describe": Role.READ,
    "/dss_api.v1.Topics/Locate": Role.READ,
    "/dss_api.v1.Topics/Remove": Role.OPERATE,
    "/dss_api.v1.Groups/Create": Role.OPERATE,
    "/dss_api.v1.Groups/List": Role.READ,
    "/dss_api.v1.Groups/Describe": Role.READ,
    "/dss_api.v1.Groups/Remove": Role.OPERATE,
    "/dss_api.v1.Groups/Offsets": Role.READ,
    "/dss_api.v1.Groups/Why": Role.READ,
    "/dss_api.v1.Groups/Stuck": Role.READ,
    "/dss_api.v1.Groups/Shards": Role.READ,
    "/dss_api.v1.Groups/Verify": Role.READ,
    "/dss_api.v1.Grants/List": Role.READ,
    "/dss_api.v1.Queues/List": Role.READ,
    "/dss_api.v1.Queues/Errors": Role.READ,
    "/dss_api.v1.Queues/Keys": Role.READ,
    "/dss_api.v1.Operations/Plan": Role.READ,
    "/dss_api.v1.Operations/Apply": Role.OPERATE,
    "/dss_api.v1.Operations/Get": Role.READ,
    "/dss_api.v1.Operations/List": Role.READ,
    "/dss_api.v1.Operations/Watch": Role.READ,
    "/dss_api.v1.Operations/Cancel": Role.OPERATE,
    "/dss_api.v1.Watch/Watch": Role.READ,
    "/dss_api.v1.Schedules/List": Role.READ,
    "/dss_api.v1.Schedules/Describe": Role.READ,
    "/dss_api.v1.Schedules/Preview": Role.READ,
    "/dss_api.v1.Schedules/Trigger": Role.OPERATE,
    "/dss_api.v1.Schedules/Tasks": Role.READ,
    "/dss_api.v1.Jobs/List": Role.READ,
    "/dss_api.v1.Jobs/Get": Role.READ,
    "/dss_api.v1.Jobs/ListChunks": Role.READ,
    "/dss_api.v1.Jobs/Acquire": Role.PRODUCE,
    "/dss_api.v1.Jobs/Renew": Role.PRODUCE,
    "/dss_api.v1.Jobs/Stage": Role.PRODUCE,
    "/dss_api.v1.Jobs/Commit": Role.PRODUCE,
    "/dss_api.v1.Jobs/GiveUp": Role.PRODUCE,
    "/dss_api.v1.Access/List": Role.ADMIN,
    "/dss_api.v1.Access/Put": Role.ADMIN,
    "/dss_api.v1.Access/Rotate": Role.ADMIN,
    "/dss_api.v1.Access/Remove": Role.ADMIN,
    "/dss_api.v1.Access/Confirm": Role.ADMIN,
    "/dss_api.v1.Backups/Create": Role.ADMIN,
    "/dss_api.v1.Backups/Confirm": Role.ADMIN,
    "/dss_api.v1.Log/Produce": Role.PRODUCE,
    "/dss_api.v1.Log/Publish": Role.PRODUCE,
    "/dss_api.v1.Log/Read": Role.CONSUME,
    "/dss_api.v1.Log/Runs": Role.CONSUME,
    "/dss_api.v1.Sessions/Attach": Role.CONSUME,
    "/dss_api.v1.Sessions/List": Role.READ,
    "/grpc.health.v1.Health/Check": Role.READ,
    "/grpc.health.v1.Health/Watch": Role.READ,
    "/grpc.health.v1.Health/List": Role.READ,
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": Role.READ,
}
"""Every method that is served; one that is not listed is denied to everybody."""

DRIVING = frozenset(
    f"/dss_api.v1.Jobs/{each}" for each in ("Acquire", "Renew", "Stage", "Commit", "GiveUp")
)
"""Methods of drivers. A driver whose job writes to no topic needs only the role consume."""


class HasPeer(Protocol):
    """The context of a call."""

    def peer(self) -> str:
        """The transport and the address of the other side."""


_login: ContextVar[Login | None] = ContextVar("login", default=None)
_payer: ContextVar[Hashable] = ContextVar("payer", default="")


def note_login(login: Login) -> None:
    """Note the login of the call in this task, and of the tasks that it starts."""
    _login.set(login)


def note_payer(peer: Hashable) -> None:
    """Charge the resources of the call in this task to this peer."""
    _payer.set(peer)


def payer_of(_: HasPeer) -> Hashable:
    """The peer that a call is charged to: its principal, or its connection."""
    return _payer.get()


def login_of(context: HasPeer) -> Login:
    """How a call came in."""
    return _login.get() or Login(by_transport(context))


def principal_of(context: HasPeer) -> Principal:
    """The caller of a call."""
    return login_of(context).principal


def by_transport(context: HasPeer) -> Principal:
    """The caller of a call to a listener without a policy."""
    return _principal_at(context.peer().partition(":")[0])


def has_role(principal: Principal, method: str, served: frozenset[Role] = ALL_ROLES) -> bool:
    """Whether the caller has the role of a method, where methods of these roles are served."""
    role = METHOD_ROLES.get(method)
    fits = {role, Role.CONSUME} if method in DRIVING else {role}
    return role is not None and not fits.isdisjoint(principal.roles & served)


def require(principal: Principal, method: str, served: frozenset[Role] = ALL_ROLES) -> None:
    """Check that the caller may use the method, where methods of these roles are served.

    Raises:
        PermissionDenied: it may not, or no role is listed for the method.
    """
    if not has_role(principal, method, served):
        role, how = METHOD_ROLES.get(method) or "none", "This address serves it to nobody"
        raise PermissionDenied(principal=principal, action=f"call {method}", role=role, how=how)


@cache
def _principal_at(transport: str) -> Principal:
    if transport == "unix":
        return Principal(f"{LOCAL_KIND}{getpass.getuser()}", ALL_ROLES)
    if transport in ("ipv4", "ipv6"):
        return Principal(LOOPBACK, ALL_ROLES)
    return Principal("unknown", frozenset())
