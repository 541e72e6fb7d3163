"""Each rule about sessions, by the shortest story that breaks it; and one that breaks none."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from dss_api.v1 import sessions_pb2, types_pb2
from dss_core.errors import (
    DssError,
    NotSubscribed,
    PermissionDenied,
    SessionNotFound,
    SessionTakenOver,
    TooManySessions,
)
from dss_sim.groups.checker import Violation
from dss_sim.sessions.clocks import WALL_START_MS, Wall
from dss_sim.sessions.connection import Connection
from dss_sim.sessions.rules import GRACE_MS, Rules
from dss_sim.sessions.timeline import Timeline
from dssd.store.port import Delete, Put
from dssd.store.rows import GroupNameRow, GroupRow, SessionRow, SubscriptionRow

SESSION_ID = b"session of ann"
SECOND_US = 1_000_000


class Person:
    """A client, as far as the rules look at it."""

    def __init__(self) -> None:
        self.name = "ann"
        self.connections: list[Talk] = []
        self.session_id = b""
        self.sure: set[int] = set()
        self.asked: set[int] = set()


class Talk:
    """A connection, as far as the rules look at it."""

    def __init__(self, person: Person, *, clean: bool = False, session_id: bytes = b"") -> None:
        self.client = person
        self.name = f"ann.{len(person.connections) + 1}"
        self.opening = sessions_pb2.Open(clean_start=clean, session_id=session_id)
        self.principal = "ann"
        self.begun_us = 1
        self.left_us: int | None = None
        self.over_us: int | None = None
        self.session_id = b""
        self.is_live = True
        self.unsubscribed: dict[int, bool] = {}
        person.connections.append(self)


class Story:
    """What happens, told to the rules."""

    def __init__(self, sessions_max: int = 9) -> None:
        self.timeline = Timeline()
        self.wall = Wall(self.timeline)
        self.began_us = 0
        self.wall_began_ms = WALL_START_MS
        self.stopping_us: int | None = None
        self.rules = Rules(self.timeline, self.wall, self, sessions_max)
        self.person = Person()
        self.row = SessionRow("ann", SESSION_ID, 1, 0, None, "ann")

    def coming(self) -> int:
        return 0

    def wait(self, seconds: float) -> None:
        self.timeline.now_us += int(seconds * SECOND_US)

    def attach(self, row: SessionRow | None = None, **opening: Any) -> Talk:  # noqa: ANN401 # fields of an opening
        talk = Talk(self.person, **opening)
        self.put(row or self.row, talk)
        return talk

    def opened(self, talk: Talk, row: SessionRow | None = None, *, present: bool) -> None:
        row = row or self.row
        item = sessions_pb2.Opened(
            session_id=row.session_id, session_epoch=row.session_epoch, session_present=present
        )
        self.rules.opened(cast("Connection", talk), item)
        talk.session_id = row.session_id

    def put(self, row: Any, talk: Talk | None = None) -> None:  # noqa: ANN401 # any row
        self.rules.committed([Put(row)], cast("Connection", talk))

    def delete(self, kind: Any, key: Any, talk: Talk | None = None) -> None:  # noqa: ANN401 # any row
        self.rules.committed([Delete(kind, key)], cast("Connection", talk))

    def refuse(self, talk: Talk, error: type[DssError], subscription: int = 0) -> None:
        item = sessions_pb2.SessionError(
            error=types_pb2.Error(code=error.code), subscription=subscription
        )
        self.rules.refused(cast("Connection", talk), item)

    def expire(self) -> None:
        self.delete(SessionRow, ("ann",))


def later(row: SessionRow, epoch: int, **fields: Any) -> SessionRow:  # noqa: ANN401 # fields of a row
    values = {name: getattr(row, name) for name in SessionRow.__slots__} | fields
    return SessionRow(**values | {"session_epoch": epoch})


def group(group_id: int = 1, session_id: bytes | None = None) -> GroupRow:
    kind = "shared" if session_id is None else "exclusive"
    return GroupRow(group_id, "g", "t/#", kind, "now", session_id, 1, 1, 0)


def subscribed(story: Story, owned: GroupRow) -> Talk:
    talk = story.attach()
    story.opened(talk, present=False)
    row = SubscriptionRow(SESSION_ID, 1, "t/#", owned.group_id)
    story.rules.committed([Put(owned), Put(row)], cast("Connection", talk))
    return talk


def an_epoch_twice(story: Story) -> None:
    story.attach()
    story.attach(story.row)


def an_id_twice(story: Story) -> None:
    story.attach()
    story.attach(later(story.row, 2), clean=True)


def an_old_connection_writes(story: Story) -> None:
    old = story.attach()
    story.attach(later(story.row, 2))
    story.put(SubscriptionRow(SESSION_ID, 1, "t/#", 1), old)


def an_old_connection_removes(story: Story) -> None:
    old = subscribed(story, group())
    story.attach(later(story.row, 2))
    story.rules.unsubscribes.add((SESSION_ID, 1))
    story.delete(SubscriptionRow, (SESSION_ID, 1), old)


def another_epoch_than_stored(story: Story) -> None:
    talk = story.attach()
    story.opened(talk, later(story.row, 7), present=False)


def a_session_forgotten(story: Story) -> None:
    story.attach()
    story.attach(later(story.row, 2, session_id=b"another"))


def present_although_it_is_new(story: Story) -> None:
    story.opened(story.attach(), present=True)


def not_found_although_there(story: Story) -> None:
    story.attach()
    talk = Talk(story.person, session_id=SESSION_ID)
    talk.begun_us = SECOND_US
    story.refuse(talk, SessionNotFound)


def discarded_while_connected(story: Story) -> None:
    story.opened(story.attach(), present=False)
    story.wait(3_600)
    story.expire()


def discarded_before_the_grace(story: Story) -> None:
    talk = story.attach()
    talk.left_us = story.timeline.now_us
    story.wait(GRACE_MS / 1_000 - 1)
    story.expire()


def discarded_before_its_expiry_after_a_restart(story: Story) -> None:
    story.attach(later(story.row, 1, expiry_ms=60_000))
    story.began_us = story.timeline.now_us
    story.rules.new_life()
    story.wait(59)
    story.expire()


def written_as_gone_while_connected(story: Story) -> None:
    talk = story.attach()
    story.opened(talk, present=False)
    story.put(later(story.row, 1, disconnected_at_ms=story.wall.ms()))


def a_subscription_lost(story: Story) -> None:
    talk = subscribed(story, group())
    story.person.session_id, story.person.sure = SESSION_ID, {1, 2}
    story.rules.group_ids[SESSION_ID, 2] = 1
    talk.left_us = story.timeline.now_us
    second = later(story.row, 2)
    story.opened(story.attach(second), second, present=True)


def a_subscription_that_nobody_asked_for(story: Story) -> None:
    subscribed(story, group())
    story.person.session_id = SESSION_ID
    second = later(story.row, 2)
    story.opened(story.attach(second), second, present=True)


def not_subscribed_although_it_is(story: Story) -> None:
    talk = subscribed(story, group())
    talk.unsubscribed[1] = True
    story.refuse(talk, NotSubscribed, subscription=1)


def another_principal(story: Story) -> None:
    story.attach()
    story.attach(later(story.row, 2, principal="bob"))


def the_owner_denied(story: Story) -> None:
    story.attach()
    talk = Talk(story.person)
    talk.begun_us = SECOND_US
    story.refuse(talk, PermissionDenied)


def a_date_that_no_clock_showed(story: Story) -> None:
    talk = story.attach()
    talk.left_us = story.timeline.now_us
    story.wait(1)
    story.put(later(story.row, 1, disconnected_at_ms=story.wall.ms() + 5_000))


def a_client_that_is_gone_counts_as_connected(story: Story) -> None:
    talk = story.attach()
    talk.left_us = story.timeline.now_us
    story.rules.check_left(cast("Connection", talk))


def a_shared_group_goes_with_a_session(story: Story) -> None:
    subscribed(story, group())
    story.delete(GroupRow, (1,))


def a_private_group_goes_while_it_is_needed(story: Story) -> None:
    subscribed(story, group(session_id=SESSION_ID))
    story.delete(GroupRow, (1,))


def a_subscription_goes_that_nobody_left(story: Story) -> None:
    talk = subscribed(story, group())
    story.delete(SubscriptionRow, (SESSION_ID, 1), talk)


def a_private_group_comes_without_its_subscription(story: Story) -> None:
    story.put(group(session_id=SESSION_ID), story.attach())


def a_private_group_is_left_over(story: Story) -> None:
    talk = subscribed(story, group(session_id=SESSION_ID))
    story.rules.unsubscribes.add((SESSION_ID, 1))
    story.delete(SubscriptionRow, (SESSION_ID, 1), talk)


def a_destroyed_group_comes_back(story: Story) -> None:
    talk = subscribed(story, group())
    story.rules.removals.add(1)
    story.rules.committed(
        [Delete(GroupRow, (1,)), Put(GroupNameRow("g", "t/#", 1, destroyed_at_ms=5))], None
    )
    story.put(group(2), talk)


def an_old_connection_lives_on(story: Story) -> None:
    story.opened(story.attach(), present=False)
    second = later(story.row, 2)
    newest = story.attach(second)
    story.opened(newest, second, present=True)
    story.rules.check_newest(cast("Connection", newest))


def the_newest_is_told_that_it_was_taken_over(story: Story) -> None:
    story.refuse(story.attach(), SessionTakenOver)


def another_session_than_the_one_named(story: Story) -> None:
    story.attach(session_id=b"of a life before")


def not_found_although_another_has_come(story: Story) -> None:
    story.attach()
    talk = Talk(story.person, session_id=b"of a life before")
    talk.begun_us = SECOND_US
    story.refuse(talk, SessionNotFound)


def taken_over_although_its_session_is_there(story: Story) -> None:
    story.attach()
    story.refuse(Talk(story.person, session_id=SESSION_ID), SessionTakenOver)


def taken_over_although_its_session_expired(story: Story) -> None:
    story.attach().left_us = story.timeline.now_us
    story.wait(GRACE_MS / 1_000)
    story.expire()
    talk = Talk(story.person, session_id=SESSION_ID)
    talk.begun_us = story.timeline.now_us + 1
    story.refuse(talk, SessionTakenOver)


def refused_although_there_is_room(story: Story) -> None:
    story.refuse(Talk(story.person), TooManySessions)


BROKEN: dict[Callable[[Story], None], str] = {
    an_epoch_twice: "S9",
    an_id_twice: "S9",
    an_old_connection_writes: "S9",
    an_old_connection_removes: "S9",
    another_epoch_than_stored: "S9",
    a_session_forgotten: "S13",
    present_although_it_is_new: "S13",
    not_found_although_there: "S13",
    discarded_while_connected: "S14",
    discarded_before_the_grace: "S14",
    discarded_before_its_expiry_after_a_restart: "S14",
    written_as_gone_while_connected: "S14",
    a_subscription_lost: "S15",
    a_subscription_that_nobody_asked_for: "S15",
    not_subscribed_although_it_is: "S15",
    another_principal: "S16",
    the_owner_denied: "S16",
    a_date_that_no_clock_showed: "S17",
    a_client_that_is_gone_counts_as_connected: "S17",
    a_shared_group_goes_with_a_session: "S18",
    a_private_group_goes_while_it_is_needed: "S18",
    a_subscription_goes_that_nobody_left: "S18",
    a_private_group_comes_without_its_subscription: "S18",
    a_private_group_is_left_over: "S18",
    a_destroyed_group_comes_back: "I18",
    an_old_connection_lives_on: "F11",
    the_newest_is_told_that_it_was_taken_over: "F11",
    another_session_than_the_one_named: "S13",
    not_found_although_another_has_come: "S13",
    taken_over_although_its_session_is_there: "F11",
    taken_over_although_its_session_expired: "F11",
    refused_although_there_is_room: "F12",
}


@pytest.mark.parametrize("tell", BROKEN, ids=lambda tell: tell.__name__)
def test_a_broken_promise_is_told_by_its_name(tell: Callable[[Story], None]) -> None:
    with pytest.raises(Violation) as caught:
        tell(Story())
    assert caught.value.invariant == BROKEN[tell]


def test_more_sessions_than_there_may_be_are_noticed() -> None:
    story = Story(sessions_max=1)
    story.attach()
    with pytest.raises(Violation, match="F12"):
        story.attach(later(story.row, 1, client_id="bob", session_id=b"of bob"))


def test_who_is_refused_as_the_bound_is_left_may_have_met_it() -> None:
    story = Story(sessions_max=1)
    talk = story.attach(later(story.row, 1))
    talk.left_us = story.timeline.now_us
    refused, late = Talk(Person()), Talk(Person())
    story.wait(3_600)
    story.expire()
    refused.begun_us = story.timeline.now_us
    story.refuse(refused, TooManySessions)
    story.wait(1)
    late.begun_us = story.timeline.now_us
    with pytest.raises(Violation, match="F12"):
        story.refuse(late, TooManySessions)


def test_a_session_that_comes_goes_and_is_taken_over_breaks_nothing() -> None:
    story = Story()
    first = subscribed(story, group(session_id=SESSION_ID))
    story.person.session_id, story.person.sure, story.person.asked = SESSION_ID, {1}, {1}
    story.wait(1)
    second = later(story.row, 2)
    newest = story.attach(second)
    story.refuse(first, SessionTakenOver)
    first.is_live = False
    story.opened(newest, second, present=True)
    story.rules.check_newest(cast("Connection", newest))
    newest.left_us = story.timeline.now_us
    story.wait(1)
    story.put(later(second, 2, disconnected_at_ms=story.wall.ms() - 500))
    story.wait(GRACE_MS / 1_000)
    story.expire()
    story.delete(GroupRow, (1,))
    story.delete(SubscriptionRow, (SESSION_ID, 1))
    assert story.rules.live == {}


def test_who_comes_back_to_a_session_that_another_discarded_was_taken_over() -> None:
    story = Story()
    story.attach()
    story.attach(later(story.row, 2, session_id=b"of another"), clean=True)
    story.refuse(Talk(story.person, session_id=SESSION_ID), SessionTakenOver)


def test_a_clock_that_jumped_while_the_daemon_was_down_leaves_the_grace() -> None:
    story = Story()
    talk = story.attach(later(story.row, 1, expiry_ms=60_000))
    talk.left_us = story.timeline.now_us
    story.put(later(story.row, 1, expiry_ms=60_000, disconnected_at_ms=story.wall.ms()))
    story.wall.move(3_600_000)
    story.began_us, story.wall_began_ms = story.timeline.now_us, story.wall.ms()
    story.rules.new_life()
    story.wait(GRACE_MS / 1_000)
    story.expire()
    assert story.rules.live == {}
