"""What a leader may do with one input: seen before its step, judged after it.

Each rule is judged on the step that breaks it, because the consequence may show only in a rare run,
or another line of defence may hide it. Invariant: it looks at the leader and changes nothing.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dss_core.ids import StreamId
from dss_core.progress import Progress
from dss_sim.groups.violation import Violation
from dssd.machines.attempts import Attempts
from dssd.machines.leader.events import (
    Committed,
    Instructed,
    LeaderEffect,
    LeaderInput,
    MadeMove,
    Persist,
    Received,
    Send,
    SessionClosed,
    StreamsChanged,
    Ticked,
)
from dssd.machines.leader.lent_stream import HELD, LentStream, StreamState
from dssd.machines.leader.state import Leader, LeaderState
from dssd.machines.messages import (
    BorrowerId,
    Disconnect,
    Grant,
    Invalidate,
    LeaderConnectResponse,
    LeaderWanted,
    LeaseStreams,
    PauseChanged,
    RevokeFinished,
    StreamReport,
    ToBorrower,
    ToLeader,
    UpdateProgress,
    UpdateStreams,
    UpdateStreamStates,
)

LENDING = frozenset({StreamState.GRANTING, StreamState.GRANTED, StreamState.REVOKING})
"""The states in which a holder may hand out records."""

REPORTED = frozenset({StreamState.GRANTED, StreamState.REVOKED, StreamState.FINISHED})
"""The states that a stream enters only by a report of its holder."""

Known = tuple[Progress, int, Attempts]


class Present(NamedTuple):
    """A report of a present grant by its holder: it must be taken."""

    lent: LentStream
    report: StreamReport
    adopts: bool
    """The stream is kept for its holder, which goes on."""
    cursor_generation: int


class Stray(NamedTuple):
    """A report of another grant, or by another borrower: it must change nothing."""

    lent: LentStream
    report: StreamReport
    known: Known
    state: StreamState
    cursor_generation: int


class UnderWay(NamedTuple):
    """A grant under which records may be handed out."""

    lent: LentStream
    grant_epoch: int
    holder: BorrowerId | None
    reserved: bool


class Sight(NamedTuple):
    """The state before a step."""

    given: LeaderInput
    is_member: bool
    """The sender of the message."""
    present: list[Present]
    stray: list[Stray]
    under_way: list[UnderWay]


def seen_before(leader: Leader, given: LeaderInput, *, kept: bool) -> Sight | None:
    """The values to compare after the step; None if there are none.

    ``kept``: free streams are kept for holders of the leader before, who may still hand out.
    """
    if leader.state is not LeaderState.LEADING or isinstance(given, Committed):
        return None
    message = given.message if isinstance(given, Received) else None
    is_member = message is not None and message.borrower_id in leader.members
    sight = Sight(given, is_member, [], [], _under_way(leader, given, kept=kept))
    if message is not None:
        for report, final in _reports_of(leader, message, is_member=is_member):
            lent = leader.streams.get(report.stream)
            if lent is not None:
                presents = not final and _is_of_now(leader, message)
                _note_report(sight, lent, report, message.borrower_id, presents=presents)
    return sight


def _note_report(
    sight: Sight, lent: LentStream, report: StreamReport, sender: BorrowerId, *, presents: bool
) -> None:
    if (sender, report.grant_epoch) != (lent.holder, lent.grant_epoch):
        known = (lent.progress, lent.frontier, lent.attempts)
        sight.stray.append(Stray(lent, report, known, lent.state, lent.cursor_generation))
    elif lent.state in HELD or lent.reserved:
        adopts = lent.reserved and presents
        sight.present.append(Present(lent, report, adopts, lent.cursor_generation))


def _is_of_now(leader: Leader, message: ToLeader) -> bool:
    """Whether the sender holds what it reports, as far as this leader had told it."""
    return isinstance(message, LeaderWanted) or message.leader_epoch == leader.leader_epoch


def _reports_of(
    leader: Leader, message: ToLeader, *, is_member: bool
) -> list[tuple[StreamReport, bool]]:
    """The reports in a message, and whether each is final; none from borrowers that are gone or
    unknown."""
    match message:
        case LeaderWanted(held=held) if message.borrower_id not in leader.departed:
            return [(report, False) for report in held]
        case Disconnect(reports=reports):
            return [(report, True) for report in reports]
        case UpdateProgress(reports=reports, final=final) if is_member:
            return [(report, final) for report in reports]
        case UpdateStreamStates(states=states, taken_over=taken_over) if is_member:
            last = [(taken.report, taken.final) for taken in taken_over]
            return [*((report, False) for report in states), *last]
        case _:
            return []


def _under_way(leader: Leader, given: LeaderInput, *, kept: bool) -> list[UnderWay]:
    """The grants that the input may end."""
    named = _named(leader, given)
    return [
        UnderWay(lent, lent.grant_epoch, lent.holder, lent.reserved)
        for lent in named
        if lent.state in LENDING or (kept and lent.reserved)
    ]


def _named(leader: Leader, given: LeaderInput) -> list[LentStream]:
    streams = leader.streams
    match given:
        case Received(message=UpdateProgress(reports=reports)):
            return [streams[each.stream] for each in reports if each.stream in streams]
        case Received(message=RevokeFinished(stream=stream)) if stream in streams:
            return [streams[stream]]
        case Received(message=Disconnect() | LeaderWanted() | UpdateStreamStates()):
            return list(streams.values())
        case SessionClosed() | StreamsChanged() | Ticked() | Instructed():
            return list(streams.values())
        case _:
            return []


def check_step(
    sight: Sight, leader: Leader, effects: Sequence[LeaderEffect], kept_until_ms: int
) -> None:
    """Judge a step by what was seen before it.

    Streams are kept for their holders until ``kept_until_ms`` on the leader's clock.

    Raises:
        Violation: the step did something forbidden, or left out something required.
    """
    for present in sight.present:
        check_taken(present, effects)
    for stray in sight.stray:
        check_stray(stray, sight.given)
    for under_way in sight.under_way:
        if is_over(under_way):
            check_doubt(under_way, sight.given)
            check_kept_for_holder(under_way, sight.given, kept_until_ms)
    if isinstance(sight.given, Received) and leader.state is LeaderState.LEADING:
        check_answer(sight, sight.given.message, leader, effects)


def check_answer(
    sight: Sight, message: ToLeader, leader: Leader, effects: Sequence[LeaderEffect]
) -> None:
    """The answer of a leader to the sender of a message.

    Raises:
        Violation: it says too much or too little.
    """
    sender = message.borrower_id
    answers = [
        effect.message
        for effect in effects
        if isinstance(effect, Send) and effect.message.borrower_id == sender
    ]
    if not sight.is_member and sender not in leader.members:
        # Who became a member and was evicted in one step heard of a pause in between.
        ended = any(isinstance(each, Invalidate) and each.stream is None for each in answers)
        for answer in answers:
            if not (ended and isinstance(answer, PauseChanged)):
                check_said_to_stranger(answer)
    # A leader of sets answers by the next set or renewal, and again while that is not shown.
    if leader.stream_sets is None:
        check_answered_at_once(message, sight.stray, answers)


def check_taken(present: Present, effects: Sequence[LeaderEffect] = ()) -> None:
    """S2: a report of a grant's holder is taken; a holder whose stream is kept is adopted.

    Raises:
        Violation: it is not.
    """
    lent, report = present.lent, present.report
    if lent.cursor_generation != present.cursor_generation:
        # It was the last report before an operator's move.
        known, frontier = _before_move(lent, effects), report.frontier
    else:
        known, frontier = lent.progress, lent.frontier
    if known.merged(report.progress) != known or frontier < report.frontier:
        raise Violation("S2", f"a report of {lent.stream} was not taken: {report}")
    if present.adopts and lent.state is StreamState.FREE:
        raise Violation("S2", f"{lent.stream} was not adopted by a report of its grant: {report}")


def _before_move(lent: LentStream, effects: Sequence[LeaderEffect]) -> Progress:
    """What the stream had before a move that was made in the step."""
    records = [record for each in effects if isinstance(each, Persist) for record in each.records]
    ended = [lent.ended_move, *(each.ended_move for each in records if each.stream == lent.stream)]
    [made] = [each for each in ended if isinstance(each, MadeMove)]
    return made.before


def check_stray(stray: Stray, given: LeaderInput) -> None:
    """S3: a report of another grant, or by another than its holder, changes nothing.

    Raises:
        Violation: it was taken.
    """
    lent = stray.lent
    if lent.cursor_generation != stray.cursor_generation:
        return
    if stray.known != (lent.progress, lent.frontier, lent.attempts):
        raise Violation("S3", f"{lent.stream} took a report of another grant: {stray.report}")
    leaves = isinstance(given, Received) and isinstance(given.message, Disconnect)
    if lent.state is not stray.state and lent.state in REPORTED and not leaves:
        raise Violation("S3", f"a report of another grant made {lent.stream} {lent.state.value}")


def is_over(under_way: UnderWay) -> bool:
    """Whether a grant ended in the step."""
    lent = under_way.lent
    if lent.grant_epoch != under_way.grant_epoch:
        return True
    return lent.state not in LENDING and not lent.reserved


def check_doubt(under_way: UnderWay, given: LeaderInput) -> None:
    """S4: records that may have been handed out unreported under an ended grant are in doubt.

    Raises:
        Violation: it would come again unmarked.
    """
    lent = under_way.lent
    if lent.unmeasured or lent.is_at_end() or (lent.keeps_order and lent.is_read()):
        return
    if lent.sealed_end is not None and lent.suspect_end >= lent.sealed_end:
        # All that there is of it is in doubt.
        return
    sent = _sent_at_most(under_way, given)
    if sent is None or sent > max(lent.suspect_end, lent.frontier, lent.progress.floor):
        raise Violation("S4", f"the grant of {lent.stream} ended without a doubt: {given}")


def _sent_at_most(under_way: UnderWay, given: LeaderInput) -> int | None:
    """The final report of the grant in the input, if there is one."""
    if not isinstance(given, Received) or given.message.borrower_id != under_way.holder:
        return None
    match given.message:
        case UpdateProgress(reports=reports, final=True) | Disconnect(reports=reports):
            last = list(reports)
        case UpdateStreamStates(taken_over=taken_over):
            last = [taken.report for taken in taken_over if taken.final]
        case _:
            return None
    grant = under_way.lent.stream, under_way.grant_epoch
    return next((each.sent for each in last if (each.stream, each.grant_epoch) == grant), None)


def check_kept_for_holder(under_way: UnderWay, given: LeaderInput, kept_until_ms: int) -> None:
    """S4: after a takeover nobody gets a stream before the lease of its holder is over.

    Raises:
        Violation: it is no longer kept, and its holder may still come.
    """
    lent = under_way.lent
    if not under_way.reserved or lent.state is StreamState.FINISHED:
        return
    by_holder = isinstance(given, Received) and given.message.borrower_id == under_way.holder
    if given.now_ms < kept_until_ms and not by_holder and not isinstance(given, SessionClosed):
        early_ms = kept_until_ms - given.now_ms
        raise Violation("S4", f"{lent.stream} is kept for its holder {early_ms} ms too short")


def check_said_to_stranger(message: ToBorrower) -> None:
    """S1: a borrower that is no member is told so, or who leads, and nothing that keeps it alive.

    Raises:
        Violation: it was told more.
    """
    if not isinstance(message, Invalidate | LeaderConnectResponse):
        raise Violation("S1", f"said to a borrower that is no member: {message}")


def check_answered_at_once(
    message: ToLeader, strays: Sequence[Stray], answers: Sequence[ToBorrower]
) -> None:
    """I11, S3: a request is answered, and a report of another grant refused, each time they come.

    Raises:
        Violation: it is not.
    """
    if isinstance(message, LeaderWanted):
        if not any(isinstance(each, LeaderConnectResponse | Invalidate) for each in answers):
            raise Violation("I11", f"a request is not answered: {message}")
    elif not isinstance(message, UpdateProgress):
        return
    refused = {(each.stream, each.grant_epoch) for each in answers if isinstance(each, Invalidate)}
    for stray in strays:
        grant = stray.lent.stream, stray.report.grant_epoch
        if grant not in refused and (None, 0) not in refused:
            raise Violation("S3", f"a report of another grant is not refused: {stray.report}")


def epochs_of(leader: Leader) -> dict[StreamId, int]:
    """The grant epoch of each stream."""
    return {stream: lent.grant_epoch for stream, lent in leader.streams.items()}


def check_staying(
    left: Mapping[BorrowerId, Mapping[StreamId, int]],
    message: Grant | LeaseStreams | UpdateStreams,
) -> None:
    """L1: a borrower that said that it leaves is lent nothing more.

    Raises:
        Violation: it is granted something that was lent later.
    """
    known = left.get(message.borrower_id)
    if known is None:
        return
    for granted in message.streams:
        if granted.grant_epoch > known.get(granted.stream, 0):
            raise Violation("L1", f"granted to a borrower that leaves: {granted}")
