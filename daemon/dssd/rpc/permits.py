"""Authorizes the messages of limited callers, and trims answers to what they may see.

Invariant: a message passes only if the caller's permissions cover its demands, also in the middle
of a stream; a record is stored only if its subject is allowed. An unlimited caller costs nothing
here.
"""

from collections.abc import AsyncIterator, Callable
from typing import Any, Self

from dss_core import frame as frames
from dss_core.errors import DssError, OnlyBesideDaemon
from dss_core.filters import TopicFilter
from dssd.access.access import Login
from dssd.access.permissions import Demand, Principal, Role, everywhere
from dssd.limits import SUBJECT_TABLES_CACHED_MAX
from dssd.rpc.demands import BESIDE, Known, demand_of_subject, demands_of
from dssd.rpc.denials import ATTACH, denial, role_denial
from dssd.rpc.principal import METHOD_ROLES
from dssd.subject_verdicts import SubjectVerdicts
from dssd.topics.catalogue import Topic

Check = Callable[[Any], None]
"""Of one message of a call. Raises PermissionDenied."""

_OF_THE_MACHINE = ("data_dir", "operators_socket", "peers", "quarantined", "before_reason")
"""Fields of a status that limited callers may not see."""


class Permits:
    """Of one daemon."""

    def __init__(self, known: Known) -> None:
        self._known = known

    def check_of(self, method: str, login: Login) -> Check | None:
        """The check for each message of a call; None: nothing to check.

        Raises:
            OnlyBesideDaemon: it is for processes that see the daemon's files.
        """
        if login.key and method in BESIDE:
            raise OnlyBesideDaemon(action=method.rpartition(".")[2])
        principal = login.principal
        if principal.permissions is None:
            return None

        def check(message: Any) -> None:  # noqa: ANN401 - the message of any method
            nonlocal principal
            if method == ATTACH and message.WhichOneof("item") == "open":
                principal = login.principal.as_client(message.open.client_id)
            for demand in demands_of(method, message, principal.name, self._known):
                if not principal.may(demand):
                    raise denial(method, message, principal, demand, self._known)

        return check

    def role_denial(self, method: str, principal: Principal, message: Any) -> DssError:  # noqa: ANN401
        """What a caller is told that lacks the role of the method.

        Args:
            message: the first of the call; None where it has none.
        """
        role = METHOD_ROLES[method]
        return role_denial(method, role, message, principal, self._known)

    def trimmed(self, method: str, principal: Principal, answer: Any) -> Any:  # noqa: ANN401
        """The answer without what is not for this caller."""
        if principal.permissions is None:
            return answer
        match method:
            case "/dss_api.v1.Topics/List":
                _keep(answer.topics, lambda each: self._sees_topic(principal, each.topic.name))
            case "/dss_api.v1.Groups/List":
                _keep(answer.groups, lambda each: _sees_group(principal, each.name, each.filter))
            case "/dss_api.v1.Grants/List":
                _keep(answer.grants, lambda each: _sees_group(principal, each.group, each.filter))
            case "/dss_api.v1.Daemon/Status" if not principal.may(everywhere(Role.READ)):
                for field in _OF_THE_MACHINE:
                    answer.ClearField(field)
            case _:
                pass
        return answer

    def _sees_topic(self, principal: Principal, name: str) -> bool:
        return principal.may(Demand(Role.READ, self._known.patterns(name), in_part=True))


class Checked:
    """The messages of a call, each checked before it takes effect."""

    def __init__(self, messages: AsyncIterator[Any], check: Check) -> None:
        self._messages = messages
        self._check = check

    def __aiter__(self) -> Self:
        """Itself."""
        return self

    async def __anext__(self) -> Any:  # noqa: ANN401 - the message of any method
        """The next message.

        Raises:
            PermissionDenied: it asks for what the caller may not.
        """
        message = await anext(self._messages)
        self._check(message)
        return message


class SubjectRule:
    """The subjects allowed in the frames of one call; any subject of a topic that is allowed as a
    whole."""

    def __init__(self, principal: Principal) -> None:
        self._principal = principal
        self._topic: Topic | None = None
        self._is_whole = False
        self._allowed: SubjectVerdicts[bytes, bool] = SubjectVerdicts(SUBJECT_TABLES_CACHED_MAX)

    def check(self, topic: Topic, frame: bytes) -> None:
        """Check a frame for a topic.

        Raises:
            PermissionDenied: it has a subject that is not allowed.
            FrameTooLarge, FrameCorrupt: it cannot be taken apart.
        """
        if topic is not self._topic:
            self._topic = topic
            self._is_whole = self._principal.may(Demand(Role.PRODUCE, topic.patterns))
        if self._is_whole:
            return
        opened = frames.opened(frame)
        table = opened.subject_table
        if table not in self._allowed:
            for subject in opened.subjects:
                self._principal.require(demand_of_subject(subject))
            self._allowed.keep(table, table, True)


def subject_rule(principal: Principal) -> SubjectRule | None:
    """That of a caller; None where any subject is allowed."""
    return None if principal.permissions is None else SubjectRule(principal)


def _sees_group(principal: Principal, name: str, text: str) -> bool:
    filters = (TopicFilter.parse(text),)
    group = name.partition("@")[0]
    return principal.may(Demand(Role.READ, filters, group, in_part=True, by_group=True))


def _keep(found: Any, is_kept: Callable[[Any], bool]) -> None:  # noqa: ANN401 - a repeated field
    kept = [each for each in found if is_kept(each)]
    if len(kept) < len(found):
        del found[:]
        found.extend(kept)
