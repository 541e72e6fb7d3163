"""Who is in a group, for operations on its members and grants.

Invariant: it is only for shared groups: a private subscription has one member for its whole life.
This module does not know what an operation does.
"""

from dss_core.changes import StreamMove
from dss_core.errors import (
    BorrowerNotFound,
    IllegalArgument,
    NotForPrivateGroups,
    StreamNotRead,
)
from dssd.leaders.groups import Groups
from dssd.leaders.lag import GroupSurvey, StreamSurvey
from dssd.leaders.registry import Registry
from dssd.machines.leader.events import MemberView
from dssd.operations.plans import subject_of
from dssd.store.rows import GroupRow


class Membership:
    """A shared group, its members and its streams as they are now."""

    def __init__(self, group: GroupRow, survey: GroupSurvey) -> None:
        self.group = group
        self.survey = survey
        self._streams = {str(stream.name): stream for stream in survey.streams}
        self._members = {member.borrower_id: member for member in survey.members}

    @property
    def subject(self) -> str:
        """The group as operations name it."""
        return subject_of(self.group)

    @property
    def staying(self) -> list[MemberView]:
        """The members that take streams."""
        return [member for member in self.survey.members if not member.leaving]

    def member(self, named: str) -> MemberView:
        """The member with this borrower id or client id.

        Raises:
            BorrowerNotFound: there is none that stays.
            IllegalArgument: the client has several.
        """
        found = [each for each in self.staying if named in (each.client_id, id_of(each))]
        if not found:
            raise BorrowerNotFound(group=self.subject, borrower=named)
        if len(found) > 1:
            ids = " or ".join(id_of(each) for each in found)
            rule = f"the client has {len(found)} members here, so name one by its id: {ids}"
            raise IllegalArgument(argument=f"the member {named}", rule=rule)
        return found[0]

    def stream(self, named: str) -> StreamSurvey:
        """The stream of this name.

        Raises:
            StreamNotRead: the group does not read it.
        """
        stream = self._streams.get(named)
        if stream is None:
            raise StreamNotRead(group=self.subject, stream=named)
        return stream

    def owner(self, stream: StreamSurvey) -> MemberView | None:
        """The member that has the stream, or is to have it next."""
        return self.by_id(stream.view.owner)

    def by_id(self, borrower_id: bytes | None) -> MemberView | None:
        """The member with this id."""
        return None if borrower_id is None else self._members.get(borrower_id)

    def owned(self, member: MemberView) -> list[StreamSurvey]:
        """The streams that the member has, or is to have next."""
        return [stream for stream in self.survey.streams if stream.view.owner == member.borrower_id]

    def move(self, stream: StreamSurvey, giver: MemberView | None, taker: MemberView) -> StreamMove:
        """The stream changes its holder."""
        return StreamMove(
            str(stream.name),
            "" if giver is None else giver.client_id,
            taker.client_id,
            "" if giver is None else id_of(giver),
            id_of(taker),
        )


def id_of(member: MemberView) -> str:
    """A borrower's id as people name it."""
    return member.borrower_id.hex()


async def membership(groups: Groups, registry: Registry, named: str, operation: str) -> Membership:
    """The group of this name; starts no leader.

    Raises:
        GroupNotFound, GroupAmbiguous: there is none, or several.
        NotForPrivateGroups: it is not shared.
    """
    group = groups.find(named)
    if group.session_id is not None:
        raise NotForPrivateGroups(group=subject_of(group), operation=operation)
    return Membership(group, await registry.survey(group))
