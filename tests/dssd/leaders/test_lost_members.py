"""What is told of members that went without leaving."""

import pytest

from dss_core.ids import StreamId, StreamName
from dssd.leaders.lost_members import TAKE_OVER_MS_MAX, LostMembers, ranges
from dssd.machines.leader.events import LeaderInput, Received, SessionClosed, Ticked
from dssd.machines.leader.state import Leader
from dssd.machines.messages import Disconnect, LeaderWanted, Revoke
from dssd.store.port import Put
from support.heard_events import Heard
from support.played_leader import LEADER, LeaderRun, fresh, of_kind, session_of

STREAMS = 4


def named(stream: StreamId) -> StreamName:
    return StreamName("orders", 0, stream.partition)


class Watched:
    """A leader of four streams, and what is told of its members."""

    def __init__(self, *members: bytes) -> None:
        self.heard = Heard()
        self.told = self.heard.events
        self.lost_members = LostMembers("g@orders/#", self.heard, named)
        self.run = LeaderRun(Leader(LEADER), *(fresh(at) for at in range(STREAMS)))
        self.run.commit_all()
        for name in members:
            wanted = LeaderWanted(name, LEADER, session_of(name), name.decode(), ())
            self.give(Received(wanted, self.run.now_ms))
        self.pass_ms(1_000)

    def give(self, given: LeaderInput) -> None:
        self.run.feed(given)
        self.lost_members.look(self.run.leader, given.now_ms)

    def pass_ms(self, ms: int) -> None:
        """Let time pass, with all that is to be stored stored."""
        for _ in range(4):
            self.run.now_ms += ms // 4
            self.give(Ticked(self.run.now_ms))
            self.run.commit_all()

    def kill(self, name: bytes) -> None:
        """As a session does whose client is gone: its borrowers say how they stand."""
        self.lost_members.miss(session_of(name), self.run.leader, self.run.now_ms)
        self.leave(name)

    def leave(self, name: bytes) -> None:
        self.give(Received(Disconnect(name, LEADER, ()), self.run.now_ms))
        self.give(SessionClosed(session_of(name), self.run.now_ms))


def held(watched: Watched, name: bytes) -> int:
    return len(watched.run.leader.members[name].streams)


def test_who_took_the_streams_of_a_member_that_was_killed_is_told() -> None:
    watched = Watched(b"ann", b"bob")
    assert held(watched, b"ann") == 2
    watched.kill(b"ann")
    watched.pass_ms(1_000)
    assert held(watched, b"bob") == STREAMS
    (event,) = watched.told
    assert (event.kind.code, event.subject) == ("member.lost", "g@orders/#")
    assert "ann went without leaving; of 2 streams, bob took 2 (orders/0/0-1)" in event.sentence
    assert (event.fields["taken_by"], event.fields["left"]) == ("bob took 2 (orders/0/0-1)", "0")


def test_a_member_that_says_goodbye_is_not_told_of() -> None:
    watched = Watched(b"ann", b"bob")
    watched.leave(b"ann")
    watched.pass_ms(TAKE_OVER_MS_MAX)
    assert not watched.told


def test_streams_that_nobody_takes_are_told_as_such() -> None:
    watched = Watched(b"ann")
    watched.kill(b"ann")
    watched.pass_ms(TAKE_OVER_MS_MAX)
    (event,) = watched.told
    assert "of 4 streams, nobody has taken 4 (orders/0/0-3) within" in event.sentence


def test_a_member_that_comes_back_took_its_streams_itself() -> None:
    watched = Watched(b"ann")
    watched.kill(b"ann")
    wanted = LeaderWanted(b"ann again", LEADER, session_of(b"ann again"), "ann", ())
    watched.give(Received(wanted, watched.run.now_ms))
    watched.pass_ms(2_000)
    assert watched.told[0].fields["taken_by"] == "ann took 4 (orders/0/0-3)"


def test_a_member_that_is_killed_while_it_gives_streams_back_is_told_of() -> None:
    watched = Watched(b"ann")
    wanted = LeaderWanted(b"bob", LEADER, session_of(b"bob"), "bob", ())
    watched.give(Received(wanted, watched.run.now_ms))
    watched.pass_ms(1_000)
    assert of_kind(watched.run.sent, Revoke)
    assert not held(watched, b"bob")
    watched.kill(b"ann")
    watched.pass_ms(1_000)
    (event,) = watched.told
    assert "of 4 streams, bob took 4 (orders/0/0-3) within " in event.sentence


def test_commits_tell_of_a_lost_member_until_its_streams_are_durably_anothers() -> None:
    watched = Watched(b"ann", b"bob")
    assert not watched.lost_members.beside()
    watched.kill(b"ann")
    watched.run.now_ms += 200
    watched.give(Ticked(watched.run.now_ms))
    assert held(watched, b"bob") == STREAMS
    assert not watched.told, "its grants may not be stored yet"
    watched.lost_members.beside()
    [draft] = watched.heard.drafts
    assert watched.lost_members.beside() == [Put(draft)]
    assert draft.sentence.startswith("ann went without leaving, with 2 streams;")
    watched.pass_ms(1_000)
    assert len(watched.told) == 1
    assert not watched.heard.drafts, "it is removed with what is told instead"
    assert not watched.lost_members.beside()


def test_streams_that_are_named_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dssd.leaders.lost_members.RANGES_NAMED_MAX", 1)
    streams = [StreamId(1, partition) for partition in (0, 1, 4, 5, 7)]
    assert ranges(streams, named) == "orders/0/0-1 and 2 more"
