"""What must hold inside the machines after every step, whatever came before.

These rules look at states that no outside observer sees; the `Checker` judges what observers see.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from dss_core.ids import StreamId
from dss_core.limits import FRAME_BYTES_MAX
from dss_core.progress import clipped, total
from dss_sim.groups.violation import Violation
from dssd.leaders.progress_columns import progress_of, unpacked_attempts
from dssd.limits import OUT_BYTES_MAX
from dssd.machines.delivery.events import Deliver
from dssd.machines.delivery.window import DeliveryWindow
from dssd.machines.leader.events import StreamRecord
from dssd.machines.leader.holding_back import is_holding
from dssd.machines.leader.lent_stream import (
    ENDED_BY_DEADLINE,
    HELD,
    NOT_LENT,
    TRANSIENT,
    LentStream,
    StreamState,
)
from dssd.machines.leader.state import Leader, LeaderState, MemberLease, owner_of
from dssd.machines.messages import BorrowerId
from dssd.store.port import Put, Write
from dssd.store.rows import ProgressRow

LATE_MS = 100
"""How late events may be after they were due."""

ANSWERED_WITHIN_MS = 4_000
"""The time after heal for two resends at the longest interval, a slow commit, and the latency."""

# Leaders


def check_leader(leader: Leader) -> None:
    """S1: each stream that is held has one holder, a member, and its member lists it.

    Raises:
        Violation: they do not, or a member may not be one.
    """
    if leader.state is not LeaderState.LEADING:
        return
    held = {stream: lent.holder for stream, lent in leader.streams.items() if lent.state in HELD}
    listed = 0
    for borrower_id, member in leader.members.items():
        if leader.owner_session not in (None, member.session_id):
            raise Violation("S1", f"{member.client_id} is a member of a group of another session")
        if borrower_id in leader.departed:
            raise Violation("S1", f"{member.client_id} is a member by a borrower that is gone")
        listed += len(member.streams)
        for stream in member.streams:
            if held.get(stream) != borrower_id:
                raise Violation("S1", f"{stream} is listed by a member that does not hold it")
    if listed != len(held):
        raise Violation("S1", "a stream is held by nobody the leader knows")


def check_moved(leader: Leader, stream: StreamId, now_ms: int) -> None:
    """I9: a member that is asked for a stream keeps its fair share without it.

    Raises:
        Violation: it was asked for needlessly.
    """
    lent = leader.streams[stream]
    if lent.state is not StreamState.REVOKING or lent.since_ms != now_ms or lent.move is not None:
        # Sent again, or over since; members may have come and gone since the decision. Or an
        # operation asks for it, and it goes back.
        return
    if lent.heir == lent.holder and lent.cancelled_moves:
        # The same if the operation was cancelled since, before its holder was asked.
        return
    if _is_operated(leader, stream) or (lent.keeps_order and (lent.is_read() or lent.is_closed)):
        return
    if lent.heir == lent.holder or any(
        # A new decision changes heirs, but not when a stream began to change hands.
        each.state is StreamState.REVOKING and each.since_ms == now_ms and each.heir == lent.holder
        for each in leader.streams.values()
        if each.move is None
    ):
        raise Violation("I9", f"{stream} moves from a member that gets others")
    leaving = {member for member, each in leader.members.items() if each.leaving}
    shared = [
        each
        for each in leader.streams.values()
        if _is_shared_out(each) and not each.reserved and owner_of(each) not in leaving
    ]
    if leader.shards.slicing is not None:
        _check_shard_moved(leader, lent, shared)
        return
    left = sum(owner_of(each) == lent.holder for each in shared)
    if left < len(shared) // (len(leader.members) - len(leaving)):
        raise Violation("I9", f"{stream} moves from a member that keeps {left} of {len(shared)}")


def _check_shard_moved(leader: Leader, moved: LentStream, shared: Sequence[LentStream]) -> None:
    """The same rule, with shares counted in shards."""
    owners: dict[int, set[BorrowerId | None]] = {}
    assert leader.shards.slicing is not None
    for lent in shared:
        number = leader.shards.slicing.shard_of(lent.stream).number
        owners.setdefault(number, set()).add(owner_of(lent))
    left = sum(moved.holder in owner for owner in owners.values())
    staying = sum(not each.leaving for each in leader.members.values())
    if left < len(owners) // staying:
        raise Violation("I9", f"{moved.stream} moves from a member that keeps {left} shards")


def _is_shared_out(lent: LentStream) -> bool:
    return lent.state not in NOT_LENT and not lent.is_to_rehome()


def _is_operated(leader: Leader, stream: StreamId) -> bool:
    """Whether an operator, not balance, may be the reason for the move."""
    pins = any(lent.pinned_session_id is not None for lent in leader.streams.values())
    asked = stream in leader.hand_overs.open or bool(leader.evictions.by_member)
    cut = leader.shards.waiting or leader.shards.former
    return pins or asked or bool(cut) or is_holding(leader)


def check_repeated(leader: Leader, now_ms: int, said_ms: Mapping[StreamId, int]) -> None:
    """I11: a grant, a revoke or its end is sent again until it is answered.

    Raises:
        Violation: one was last said too long ago.
    """
    if leader.state is not LeaderState.LEADING or leader.stream_sets is not None:
        return
    for stream, lent in leader.streams.items():
        said = lent.durable or lent.state is StreamState.REVOKING
        if lent.state in TRANSIENT and said:
            silent_ms = now_ms - max(lent.since_ms, said_ms.get(stream, 0))
            if silent_ms > leader.timing.resend_max_ms + LATE_MS:
                raise Violation("I11", f"{stream} is {lent.state.value}, unsaid for {silent_ms} ms")


def check_deadlines(leader: Leader, now_ms: int) -> None:
    """I13, I16: a lease, and a grant or a revoke that is not answered, end by their deadline.

    Raises:
        Violation: one has not ended.
    """
    if leader.state is not LeaderState.LEADING:
        return
    for borrower_id, member in leader.members.items():
        ends_ms = leader.timers.at_ms(MemberLease(borrower_id))
        if ends_ms is None or ends_ms + LATE_MS < now_ms:
            raise Violation("I13", f"the lease of {member.client_id} is over at {ends_ms}")
    for lent in leader.streams.values():
        if lent.state in ENDED_BY_DEADLINE:
            waited_ms = now_ms - lent.since_ms
            within_ms = leader.timing.revoke_deadline_ms
            if lent.state is StreamState.REVOKING:
                # One that was being revoked before its holder was evicted keeps its deadline.
                within_ms = max(within_ms, _grace_ms(leader, lent))
            if waited_ms > within_ms + LATE_MS:
                raise Violation("I16", f"{lent.stream} is {lent.state.value} for {waited_ms} ms")


def _grace_ms(leader: Leader, lent: LentStream) -> int:
    """The grace that an operator gives its holder."""
    eviction = leader.evictions.by_member.get(lent.holder or b"")
    return 0 if eviction is None or eviction.grace_ms is None else eviction.grace_ms


def check_answered(
    leader: Leader, now_ms: int, healed_ms: int, lives: Callable[[BorrowerId], bool], revoke_ms: int
) -> None:
    """L1: after heal, a living holder is not waited for longer than resends take.

    Raises:
        Violation: a stream is in a state that only a lost message would explain.
    """
    if leader.state is not LeaderState.LEADING:
        return
    for lent in leader.streams.values():
        if lent.state not in TRANSIENT or lent.holder is None or not lives(lent.holder):
            continue
        within_ms = ANSWERED_WITHIN_MS
        if lent.state is StreamState.REVOKING:
            within_ms = revoke_ms + _grace_ms(leader, lent)
        waited_ms = now_ms - max(lent.since_ms, healed_ms)
        if waited_ms > within_ms:
            raise Violation("L1", f"{lent.stream} has been {lent.state.value} for {waited_ms} ms")


# The store


def check_written(records: Iterable[StreamRecord], writes: Iterable[Write]) -> None:
    """S6: a takeover would read what the leader wanted to keep.

    Raises:
        Violation: a row does not say what its record says.
    """
    rows = [write.row for write in writes if isinstance(write, Put)]
    progress = iter([row for row in rows if isinstance(row, ProgressRow)])
    for record in records:
        row = next(progress)
        queues = [next(progress) for _ in record.queues]
        if [(progress_of(each), each.applied_end) for each in queues] != [
            (each.progress, each.applied_end) for each in record.queues
        ]:
            raise Violation("S6", f"{record.queues} were written as {queues}")
        attempts = unpacked_attempts(row.attempts)
        kept = (progress_of(row), row.frontier, attempts, row.finished)
        if kept != (record.progress, record.frontier, record.attempts, record.finished):
            raise Violation("S6", f"{record} was written as {row}")


# Sessions


def check_window(window: DeliveryWindow, frame_records_max: int) -> None:
    """S12: credit is never negative, and records out exceed it by no more than is reserved.

    That is a reserve for each subscription, a part for redeliveries, and the rest of a frame for
    each of both. New records of one subscription exceed it by less than one frame.

    Raises:
        Violation: it does not hold.
    """
    credit = window.credit
    if credit.out_records < 0 or credit.out_bytes < 0:
        raise Violation("S12", "more credit came back than was spent")
    frames = 0
    for account in credit.accounts:
        frames += 2
        new = account.records.out - account.records.again
        if not 0 <= new < credit.records + frame_records_max or account.records.again < 0:
            raise Violation("S12", f"{new} new records of one subscription are out")
    if credit.out_records >= 2 * credit.records + frames * (frame_records_max + 1):
        raise Violation("S12", f"{credit.out_records} records are out")
    if credit.out_bytes >= OUT_BYTES_MAX + FRAME_BYTES_MAX:
        raise Violation("S12", f"{credit.out_bytes} bytes are out")
    out = sum(lent.records.out.records for lent in window.streams())
    if out != window.credit.out_records:
        raise Violation("S12", f"{window.credit.out_records} records are charged, {out} are out")


def records_of(delivery: Deliver) -> int:
    """How many records the delivery has for the user."""
    masked = total(clipped(delivery.mask, delivery.base, delivery.end))
    return delivery.end - delivery.base - masked


def check_blame(delivery: Deliver, credit_records: int) -> None:
    """S10: redelivered records come in runs halved at each attempt, so one is blamed soon.

    Raises:
        Violation: more come together.
    """
    if delivery.attempt > 1:
        records = records_of(delivery)
        if records > max(1, credit_records >> (delivery.attempt - 1)):
            raise Violation("S10", f"{records} records of {credit_records} together: {delivery}")
