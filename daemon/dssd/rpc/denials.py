"""What a denial says: the role and the names that would allow the call, to who may know of them.

A denied caller that may not know whether something exists gets the same denial as if it did not:
one that repeats what the call itself asks for. Invariant: a denial names no topic or group that the
caller neither wrote nor may see. This module decides nothing; it is asked once a call is denied.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from dss_core.errors import (
    GroupNotFound,
    OperationNotFound,
    PermissionDenied,
)
from dss_core.filters import SubscriptionFilter
from dssd.access.permissions import Demand, Principal, Role
from dssd.rpc.demands import Known, demands_of
from dssd.rpc.principal import DRIVING
from dssd.store.rows import GroupRow, OperationRow

ATTACH = "/dss_api.v1.Sessions/Attach"

ANY_TOPIC = "--topic FILTER"
ANY_GROUP = "--group NAME"
"""Placeholders in a denial for a topic or group that the call does not name."""

_NAMED: dict[Role, str] = {
    Role.READ: ANY_TOPIC,
    Role.PRODUCE: ANY_TOPIC,
    Role.CONSUME: f"{ANY_TOPIC} {ANY_GROUP}",
    Role.OPERATE: f"{ANY_TOPIC} {ANY_GROUP}",
    Role.ADMIN: "",
}


class _Nothing:
    """A daemon in which nothing exists."""

    def find(self, text: str) -> Any:  # noqa: ANN401 - of nothing
        """No topic and no schedule."""
        return None

    def topics_of(self, name: str) -> None:
        """No job."""
        return

    def dead_letters_of(self, name: str) -> str:
        """No job."""
        return ""

    def get(self, number: int) -> OperationRow:
        """No operation."""
        raise OperationNotFound(number=number)


class _NoGroups:
    """A daemon without groups."""

    def find(self, text: str) -> GroupRow:
        """None."""
        raise GroupNotFound(group=text)

    def groups(self) -> Sequence[GroupRow]:
        """None."""
        return ()


_NOTHING = _Nothing()
NOTHING_KNOWN = Known(_NOTHING, _NoGroups(), _NOTHING, _NOTHING, _NOTHING)


def denial(
    method: str,
    message: Any,  # noqa: ANN401 - of any method
    principal: Principal,
    denied: Demand,
    known: Known,
) -> PermissionDenied:
    """The denial for a message that asks for more than its caller may do."""
    demands = _demands(method, message, principal, known)
    if all(principal.may(each.seen_by) for each in demands) or (
        method in DRIVING and any(map(principal.may, demands))
    ):  # a caller with a part of the job's permissions may know of the job
        return principal.refusal(denied)
    blind = _demands(method, message, principal, NOTHING_KNOWN)
    first = next((each for each in blind if not principal.may(each)), principal.veiled(denied))
    return principal.refusal(first)


def role_denial(
    method: str,
    role: Role,
    message: Any,  # noqa: ANN401 - of any method
    principal: Principal,
    known: Known,
) -> PermissionDenied:
    """The denial for a caller without the role of the method, given its first message, if any."""
    if message is not None:
        for demand in (*_demands(method, message, principal, known), *_announced(method, message)):
            if not principal.may(demand):
                return denial(method, message, principal, demand, known)
    how = principal.allowed_by(f"--role {role} {_NAMED[role]}".rstrip())
    return PermissionDenied(principal=principal, action=f"call {method}", role=role, how=how)


def _demands(
    method: str,
    message: Any,  # noqa: ANN401 - of any method
    principal: Principal,
    known: Known,
) -> Iterable[Demand]:
    return tuple(demands_of(method, message, principal.name, known))


def _announced(method: str, message: Any) -> Iterable[Demand]:  # noqa: ANN401
    """What a session is opened for, as its client says it. It counts for what is told only: each
    subscription is checked by itself."""
    if method == ATTACH and message.WhichOneof("item") == "open":
        for text in message.open.filters:
            parsed = SubscriptionFilter.parse(text)
            yield Demand(Role.CONSUME, (parsed.filter,), parsed.group)
