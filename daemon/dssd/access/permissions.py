"""Authorization: roles, permissions, and whether they cover a demand.

Invariant: a demand is denied unless one permission alone covers it. This module knows neither the
calls nor how callers log in.
"""

import json
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase

from dss_core.errors import IllegalArgument, IllegalFilter, PermissionDenied
from dss_core.filters import TopicFilter
from dss_core.limits import NAME_BYTES_MAX

PERMISSIONS_MAX = 16
"""Of one principal. Each may name several topics and groups."""

NAMES_OF_PERMISSION_MAX = 64
"""Topic filters, or group patterns, of one permission: each demand is compared with all."""

_NOT_IN_A_NAME = frozenset("/+#%$")
"""Characters that would turn one level into another filter."""

_GROUP_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-*")


class Role(StrEnum):
    """The role that a method requires."""

    READ = "read"
    """See names and states, but no records. Every other role includes it for its own topics and
    groups."""
    PRODUCE = "produce"
    CONSUME = "consume"
    OPERATE = "operate"
    ADMIN = "admin"
    """Manage principals. Includes all other roles, everywhere."""


ALL_ROLES = frozenset(Role)
EVERY_SUBJECT = TopicFilter.parse("#")
EVERY_GROUP = "*"

USER, CLIENT = "%u", "%c"
"""In a topic filter: the caller's own name, without its kind, and the client id of its session."""

_KIND_END = ":"


@dataclass(frozen=True, slots=True)
class Demand:
    """What a call asks for."""

    role: Role
    filters: tuple[TopicFilter, ...] = ()
    """Subjects that it reaches."""
    group: str | None = None
    in_part: bool = False
    """Permission for some of the subjects is enough: each record is checked by itself, or none is
    involved."""
    by_group: bool = False
    """It concerns the state of a group, no records: a permission that names no topics has it by
    the group's name alone."""

    @property
    def wanted(self) -> str:
        """The permission that would allow it, as a command line has it."""
        if self.role is Role.ADMIN:
            return f"--role {self.role}"
        topics = [f"--topic {shlex.quote(each.text)}" for each in self.filters]
        groups = [] if self.group is None else [f"--group {shlex.quote(self.group)}"]
        return " ".join([f"--role {self.role}", *topics, *groups])

    @property
    def seen_by(self) -> "Demand":
        """The demand of whoever may know that what it names exists."""
        by_group = self.group is not None
        return replace(self, role=Role.READ, in_part=True, by_group=by_group)


def everywhere(role: Role) -> Demand:
    """A demand on all topics and groups together."""
    return Demand(role, (EVERY_SUBJECT,), EVERY_GROUP)


@dataclass(frozen=True, slots=True)
class Permission:
    """A role, for some subjects and groups."""

    role: Role
    topics: tuple[TopicFilter, ...]
    groups: tuple[str, ...]
    """Names in which ``*`` stands for any characters."""

    def allows(self, demand: Demand) -> bool:
        """Whether it covers the demand alone."""
        if demand.role not in (self.role, Role.READ):
            return False
        if demand.group is not None and not self.has_group(demand.group):
            return False
        if not demand.filters or (demand.by_group and not self.topics):
            return True
        if demand.in_part:
            return any(own.overlaps(each) for each in demand.filters for own in self.topics)
        return all(any(own.covers(each) for own in self.topics) for each in demand.filters)

    def filled(self, placeholder: str, name: str) -> "Permission":
        """The permission with placeholders replaced by a name. A name that cannot be a level
        matches no subject."""
        topics = (_filled(each, placeholder, name) for each in self.topics)
        return replace(self, topics=tuple(each for each in topics if each is not None))

    def has_group(self, name: str) -> bool:
        """Whether the group is one of its own."""
        return any(fnmatchcase(name, pattern) for pattern in self.groups)


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller."""

    name: str
    roles: frozenset[Role]
    permissions: tuple[Permission, ...] | None = None
    """None: its roles hold for all topics and groups."""

    def __str__(self) -> str:
        """The name."""
        return self.name

    @classmethod
    def of(cls, name: str, permissions: Sequence[Permission]) -> "Principal":
        """The one that has these permissions."""
        roles = {each.role for each in permissions}
        if Role.ADMIN in roles:
            return cls(name, ALL_ROLES)
        own = name.partition(_KIND_END)[2]
        filled = tuple(each.filled(USER, own) for each in permissions)
        return cls(name, frozenset(roles | {Role.READ}) if roles else frozenset(), filled)

    def as_client(self, client_id: str) -> "Principal":
        """The same principal, with the client id of its session."""
        if self.permissions is None:
            return self
        filled = tuple(each.filled(CLIENT, client_id) for each in self.permissions)
        return replace(self, permissions=filled)

    def may(self, demand: Demand) -> bool:
        """Whether it has a permission that covers the demand."""
        if self.permissions is None:
            return demand.role in self.roles
        return any(each.allows(demand) for each in self.permissions)

    def require(self, demand: Demand) -> None:
        """Check the demand.

        Raises:
            PermissionDenied: no permission covers it.
        """
        if not self.may(demand):
            raise self.refusal(demand)

    def refusal(self, demand: Demand) -> PermissionDenied:
        """That it may not, with the command that would allow it."""
        how = self.allowed_by(demand.wanted)
        return PermissionDenied(principal=self, action=_said(demand), role=demand.role, how=how)

    def veiled(self, demand: Demand) -> Demand:
        """A demand that would be enough too, and names nothing that the principal may not see."""
        names = demand.group is not None and any(
            each.has_group(demand.group) for each in self.permissions or ()
        )
        group = demand.group if demand.group is None or names else EVERY_GROUP
        return replace(demand, filters=() if demand.by_group else (EVERY_SUBJECT,), group=group)

    def allowed_by(self, permission: str) -> str:
        """How an administrator gives it a permission, written as options of the command."""
        command = f"dssctl principals allow {shlex.quote(self.name)} {permission}"
        return f"An administrator gives it with: {command}"


def _filled(topic: TopicFilter, placeholder: str, name: str) -> TopicFilter | None:
    levels = topic.text.split("/")
    if placeholder not in levels:
        return topic
    if not name or set(name) & _NOT_IN_A_NAME:
        return None
    try:
        return TopicFilter.parse("/".join(name if each == placeholder else each for each in levels))
    except IllegalFilter:
        return None


def _said(demand: Demand) -> str:
    subjects = ", ".join(each.text for each in demand.filters)
    group = "" if demand.group is None else f"in the group {demand.group}"
    return " ".join(each for each in (demand.role.value, subjects, group) if each)


def permission_of(role: str, topics: Iterable[str], groups: Iterable[str]) -> Permission:
    """A permission of its texts.

    Raises:
        IllegalArgument: there is no such role, or the rest does not fit to it.
        IllegalFilter: a topic filter breaks its rules.
    """
    if role not in set(Role):
        raise IllegalArgument(argument=f"role {role}", rule=f"it is one of {', '.join(Role)}")
    read = tuple(TopicFilter.parse(each) for each in dict.fromkeys(topics))
    named = tuple(dict.fromkeys(groups))
    for pattern in named:
        if not pattern or len(pattern) > NAME_BYTES_MAX or not set(pattern) <= _GROUP_CHARACTERS:
            rule = "it is a name of a group, in which * stands for any characters"
            raise IllegalArgument(argument=f"group {pattern!r}", rule=rule)
    if max(len(read), len(named)) > NAMES_OF_PERMISSION_MAX:
        rule = f"at most {NAMES_OF_PERMISSION_MAX} topics and as many groups"
        raise IllegalArgument(argument="permission", rule=rule)
    if role == Role.ADMIN and (read or named):
        rule = "an admin may do everything: leave topics and groups out"
        raise IllegalArgument(argument="role admin", rule=rule)
    if role != Role.ADMIN and not (read or named):
        rule = f"say for which topics or groups; for all of them: {role} '#' '*'"
        raise IllegalArgument(argument=f"role {role}", rule=rule)
    if role == Role.PRODUCE and not read:
        raise IllegalArgument(argument="role produce", rule="say for which topics: '#' for all")
    return Permission(Role(role), read, named)


_SUSPENDED = "suspended"


def stored(permissions: Sequence[Permission]) -> str:
    """Permissions encoded for a row."""
    return json.dumps(
        [
            {"role": each.role, "topics": [own.text for own in each.topics], "groups": each.groups}
            for each in permissions
        ]
    )


def suspended(text: str) -> str:
    """The permissions of a row, to be confirmed before they hold again."""
    return text if is_suspended(text) else json.dumps({_SUSPENDED: json.loads(text)})


def confirmed(text: str) -> str:
    """The permissions of a row, as they were before they were suspended."""
    return json.dumps(json.loads(text)[_SUSPENDED]) if is_suspended(text) else text


def is_suspended(text: str) -> bool:
    """Whether the permissions of a row do not hold until they are confirmed."""
    return text.startswith("{")


def read_stored(text: str) -> tuple[Permission, ...]:
    """The permissions of a row, also where they are suspended."""
    listed = json.loads(confirmed(text))
    try:
        return tuple(permission_of(each["role"], each["topics"], each["groups"]) for each in listed)
    except (IllegalArgument, IllegalFilter) as newer:
        raise AssertionError("a row of permissions that no daemon writes") from newer
