"""The agent between a session that records what it is told and mailboxes that record messages."""

from collections.abc import Callable
from dataclasses import replace

from dss_core.ids import StreamId
from dss_core.progress import Progress
from dssd.machines.borrower.events import Ended
from dssd.machines.messages import (
    BorrowerId,
    Disconnect,
    Grant,
    GrantedStream,
    Invalidate,
    LeaderWanted,
    LeaseStreams,
    Pause,
    PauseChanged,
    PauseObeyed,
    ProgressSaved,
    RenewStreamLease,
    Revoke,
    Revoked,
    RevokeFinished,
    StreamReport,
    Taken,
    ToBorrower,
    ToLeader,
    UpdateProgress,
    UpdateStreams,
    UpdateStreamStates,
)
from dssd.machines.queues import QueueState
from dssd.store.rows import GroupRow
from dssd.subscriptions.agent import Agent, Subscriber
from dssd.subscriptions.handler import Handler

GROUP = GroupRow(7, "g", "orders/#", "shared", "now", None, 30_000, 0, 0)
STREAM = StreamId(1, 0)


class RecordedMailboxes:
    """Mailboxes that deliver nothing."""

    def __init__(self) -> None:
        self.sent: list[ToLeader] = []
        self.boxes: dict[BorrowerId, Callable[[ToBorrower], None]] = {}

    def attach_borrower(
        self, borrower_id: BorrowerId, receive: Callable[[ToBorrower], None]
    ) -> Callable[[], None]:
        self.boxes[borrower_id] = receive
        return lambda: self.boxes.__delitem__(borrower_id)

    def to_leader(self, group_id: int, message: ToLeader) -> None:
        assert group_id == GROUP.group_id
        self.sent.append(message)


class Session:
    """What a session is told, in order."""

    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []
        self.mailboxes = RecordedMailboxes()
        self.handler = Handler(Subscriber(b"s", "c", 6_000), self.mailboxes, self)
        self.borrowers = 0
        self.grants = 0

    def install(self, agent: Agent, borrower_id: bytes, granted: GrantedStream) -> int:
        self.grants += 1
        self.handler.granted(self.grants, agent, borrower_id)
        self.told.append(("install", granted.stream))
        return self.grants

    def finish(self, grant: int, deadline_ms: int) -> None:
        self.told.append(("finish", grant, deadline_ms))

    def drop(self, grant: int, reason: str) -> None:
        self.handler.dropped(grant)
        self.told.append(("drop", grant, reason))

    def saved(self, grant: int, progress: Progress) -> None:
        self.told.append(("saved", grant, progress))

    def suspend(self, subscription: int) -> None:
        self.told.append(("suspend", subscription))

    def resume(self, subscription: int) -> None:
        self.told.append(("resume", subscription))

    def set_paused(self, agent: Agent, borrower_id: bytes, turn: int, *, paused: bool) -> None:
        self.told.append(("set_paused", borrower_id, turn, paused))

    def standing(self, subscription: int, state: str) -> None:
        pass

    def over(self, agent: Agent, ended: Ended) -> None:
        self.handler.ended(agent.subscription)
        self.told.append(("over", agent.subscription, ended.error_code))

    def mailed(self, agent: Agent, borrower_id: bytes, message: ToBorrower) -> None:
        agent.receive(borrower_id, message, 0)

    def new_borrower_id(self) -> bytes:
        self.borrowers += 1
        return bytes([self.borrowers])

    def hear(self, message: ToBorrower) -> None:
        self.mailboxes.boxes[message.borrower_id](message)

    def take(self) -> list[tuple[object, ...]]:
        told, self.told = self.told, []
        return told

    def messages(self, kind: type[ToLeader]) -> list[ToLeader]:
        return [message for message in self.mailboxes.sent if isinstance(message, kind)]


def granted_session() -> Session:
    session = Session()
    session.handler.begin(1, GROUP, 0)
    stream = GrantedStream(STREAM, 3, Progress(0), 0, (), 0)
    session.hear(Grant(b"\x01", 1, (stream,), 6_000))
    assert session.take() == [("install", STREAM)]
    return session


def report(floor: int) -> StreamReport:
    return StreamReport(STREAM, 3, Progress(floor), floor)


def test_a_subscription_begins_by_looking_for_the_leader() -> None:
    session = Session()
    session.handler.begin(1, GROUP, 0)
    assert session.mailboxes.sent == [LeaderWanted(b"\x01", 0, b"s", "c", subscription=1)]
    assert session.handler.wake_at_ms() == 1_000
    assert session.handler.group_ids() == {GROUP.group_id}


def test_reports_reach_the_borrower_that_holds_the_grant() -> None:
    session = granted_session()
    session.mailboxes.sent.clear()
    session.handler.report(((1, report(5)), (99, report(9))), 10, final=False)
    [update] = session.mailboxes.sent
    assert isinstance(update, UpdateProgress)
    assert [each.progress for each in update.reports] == [Progress(5)]


def test_what_is_durable_of_queues_is_told_by_their_levels() -> None:
    session = granted_session()
    queues = (QueueState(StreamId(8, 0), Progress(3), 4), QueueState(StreamId(9, 0), Progress(1)))
    session.hear(ProgressSaved(b"\x01", 1, STREAM, 3, Progress(5), queues))
    saved = [("saved", 1, Progress(5)), ("saved", 2, Progress(3)), ("saved", 3, Progress(1))]
    assert session.take() == saved


def test_a_revoke_is_finished_by_the_session_and_then_dropped() -> None:
    session = granted_session()
    session.hear(Revoke(b"\x01", 1, STREAM, 3, 10_000))
    assert session.take() == [("finish", 1, 10_000)]
    session.handler.report(((1, report(5)),), 10, final=True)
    session.hear(Revoked(b"\x01", 1, STREAM, 3, Progress(5)))
    assert session.take() == [("saved", 1, Progress(5)), ("drop", 1, "revoked")]
    assert session.messages(RevokeFinished) == [RevokeFinished(b"\x01", 1, STREAM, 3)]


def test_an_invalid_borrower_is_followed_by_a_new_one_under_a_new_id() -> None:
    session = granted_session()
    session.hear(Invalidate(b"\x01", 1, "unknown borrower"))
    assert session.take() == [("drop", 1, "unknown borrower"), ("resume", 1)]
    assert list(session.mailboxes.boxes) == [b"\x02"]
    assert session.mailboxes.sent[-1] == LeaderWanted(b"\x02", 0, b"s", "c", subscription=1)


def test_a_removed_group_ends_the_subscription_for_good() -> None:
    session = granted_session()
    session.hear(Invalidate(b"\x01", 1, "DSS2006"))
    assert session.take() == [("drop", 1, "DSS2006"), ("over", 1, "DSS2006")]
    assert session.mailboxes.boxes == {}
    assert len(session.handler) == 0


def test_leaving_waits_for_the_final_report_and_is_not_undone() -> None:
    session = granted_session()
    agent = session.handler.agent(1)
    assert agent is not None
    agent.leave(10)
    assert session.take() == [("finish", 1, 5_000)]
    session.handler.report(((1, report(1)),), 10, final=False)
    assert session.take() == []
    session.handler.report(((1, report(2)),), 10, final=True)
    assert session.take() == [("drop", 1, "unsubscribed"), ("over", 1, "")]
    assert session.messages(Disconnect) != []
    assert session.mailboxes.boxes == {}


def test_a_lost_connection_ends_every_borrower_with_its_last_report() -> None:
    session = granted_session()
    session.handler.report(((1, report(5)),), 10, final=False)
    session.handler.disconnect(20, None)
    [goodbye] = session.messages(Disconnect)
    assert isinstance(goodbye, Disconnect)
    assert [each.progress for each in goodbye.reports] == [Progress(5)]
    assert session.mailboxes.boxes == {}


def test_a_silent_leader_suspends_delivery_and_then_costs_the_lease() -> None:
    session = granted_session()
    told: list[tuple[object, ...]] = []
    while session.borrowers == 1:
        wake_ms = session.handler.wake_at_ms()
        assert wake_ms is not None
        assert wake_ms <= 6_000
        session.handler.tick(wake_ms)
        told += session.take()
    assert told == [("suspend", 1), ("drop", 1, "lease ended"), ("resume", 1)]


def test_the_borrowers_of_a_lease_group_hold_sets_and_the_session_is_told_the_same() -> None:
    session = Session()
    session.handler.begin(1, replace(GROUP, protocol="lease"), 0)
    stream = GrantedStream(STREAM, 3, Progress(0), 0, (), 0)
    session.hear(LeaseStreams(b"\x01", 1, 1, (stream,), 6_000, 0))
    assert session.take() == [("install", STREAM)]
    session.hear(UpdateStreams(b"\x01", 1, 1, 2, (), (Taken(STREAM, 3, 9_000),), 0))
    assert session.take() == [("finish", 1, 9_000)]
    session.handler.report(((1, report(5)),), 10, final=True)
    last = session.messages(UpdateStreamStates)[-1]
    assert isinstance(last, UpdateStreamStates)
    assert [each.final for each in last.taken_over] == [True]
    session.hear(RenewStreamLease(b"\x01", 1, 2, 0, None, ((STREAM, 3),)))
    assert session.take() == [("saved", 1, Progress(5)), ("drop", 1, "revoked")]


def test_a_pause_reaches_the_session_and_its_confirmation_the_leader() -> None:
    session = granted_session()
    session.hear(PauseChanged(b"\x01", 1, Pause(2, True)))
    assert session.take() == [("set_paused", b"\x01", 1, True)]
    agent = session.handler.agent(1)
    assert agent is not None
    assert session.messages(PauseObeyed) == []
    agent.pause_taken(b"\x01", 1, 10)
    assert session.messages(PauseObeyed) == [PauseObeyed(b"\x01", 1, 2)]


def test_a_new_borrower_begins_without_the_pause_of_the_one_before_and_is_told_anew() -> None:
    session = granted_session()
    session.hear(PauseChanged(b"\x01", 1, Pause(2, True)))
    session.take()
    session.hear(Invalidate(b"\x01", 1, "stale"))
    assert session.take() == [
        ("drop", 1, "stale"),
        ("resume", 1),
        ("set_paused", b"\x01", 1, False),
    ]
    stream = GrantedStream(STREAM, 4, Progress(0), 0, (), 0, pause=Pause(2, True))
    session.hear(Grant(b"\x02", 1, (stream,), 6_000))
    assert session.take() == [("set_paused", b"\x02", 1, True), ("install", STREAM)]
