"""Times of a leader: leases, rebalances, commits; seen before a step, judged after it.

A timer that is set too late has no effect in most runs, because another timer or the next message
hides it. So each is judged on the step that sets it. Invariant: this looks at the leader and
changes nothing; it relies only on the bounds in the leader's configuration.
"""

from collections.abc import Mapping
from typing import NamedTuple

from dss_core.ids import StreamId
from dss_sim.groups.leader_steps import epochs_of
from dss_sim.groups.violation import Violation
from dssd.machines.leader.events import (
    LeaderInput,
    Received,
    SessionClosed,
    StreamsChanged,
    Ticked,
)
from dssd.machines.leader.holding_back import is_holding
from dssd.machines.leader.lent_stream import StreamState
from dssd.machines.leader.state import Alarm, Leader, LeaderState, MemberLease
from dssd.machines.leader.stream_acts import STREAMS_A_REBALANCE_MS
from dssd.machines.messages import BorrowerId

GATHERED_MS_MAX = 1_000
"""Reported progress waits no longer than this for the next commit, however slow commits are."""
NEXT_STEP_MS = 1
"""How late work may be that is too much for one step and continues in the next."""


class Times(NamedTuple):
    """The state before a step."""

    given: LeaderInput
    leases: Mapping[BorrowerId, int | None]
    """When the lease of each member ends."""
    let_go: frozenset[BorrowerId]
    """Members whose streams all have a final report, or are about to go."""
    kept: Mapping[StreamId, int]
    """While the daemon ends its sessions: the epochs of its streams."""


def times_before(leader: Leader, given: LeaderInput) -> Times:
    """The values to compare after the step."""
    leases = {each: leader.timers.at_ms(MemberLease(each)) for each in leader.members}
    streams = leader.streams
    gone = set(given.gone) if isinstance(given, StreamsChanged) else set()
    let_go = frozenset(
        member.borrower_id
        for member in leader.members.values()
        if all(streams[each].state is StreamState.REVOKED for each in member.streams - gone)
    )
    return Times(given, leases, let_go, epochs_of(leader) if leader.sessions_ending else {})


def check_times(times: Times, leader: Leader, commit_took_ms: int) -> None:
    """Judge a step by what was seen before it.

    ``commit_took_ms``: the longest commit of this leader so far.

    Raises:
        Violation: something ends too soon, or is done too late.
    """
    if leader.state is not LeaderState.LEADING:
        return
    check_leases(times, leader)
    check_given_up(times, leader)
    check_shared_soon(times, leader)
    check_lent_no_more(times, leader)
    check_gathered(leader, times.given.now_ms, commit_took_ms)


def check_leases(times: Times, leader: Leader) -> None:
    """I13, I14: a lease ends L after the last message of its borrower, not of another.

    Raises:
        Violation: one ends later, or sooner.
    """
    heard = _sender(times, leader)
    fresh_ms = times.given.now_ms + leader.timing.lease_ms
    for borrower_id, member in leader.members.items():
        due_ms = fresh_ms if borrower_id == heard else times.leases.get(borrower_id)
        ends_ms = leader.timers.at_ms(MemberLease(borrower_id))
        if ends_ms is None or (due_ms is not None and ends_ms > due_ms):
            raise Violation("I13", f"{member.client_id} is kept for longer than its lease")
        if due_ms is not None and ends_ms < due_ms:
            raise Violation("I14", f"{member.client_id} is kept for less than its lease")


def check_given_up(times: Times, leader: Leader) -> None:
    """I14: a borrower that is no member any more said so, was silent for its lease, or was evicted
    after it had let go of everything; or its session closed.

    Raises:
        Violation: one lives.
    """
    if isinstance(times.given, SessionClosed):
        return
    heard = _sender(times, leader)
    for borrower_id, ends_ms in times.leases.items():
        if borrower_id in leader.members or borrower_id == heard:
            continue
        if borrower_id in leader.evictions.ended and borrower_id in times.let_go:
            continue
        if ends_ms is None or ends_ms > times.given.now_ms:
            raise Violation("I14", f"{borrower_id!r} was given up within its lease")


def check_shared_soon(times: Times, leader: Leader) -> None:
    """L1: a free stream waits for a rebalance as long as joins gather; after a death, not at all.

    While the daemon ends its sessions nothing is lent any more: the next daemon lends it. A stream
    of a shard waits for the others of its shard.

    Raises:
        Violation: it waits longer.
    """
    if leader.moves or is_holding(leader) or leader.shards.apart:
        return
    if all(member.leaving for member in leader.members.values()):
        return
    if leader.sessions_ending or not any(
        each.state is StreamState.FREE and not each.reserved for each in leader.streams.values()
    ):
        return
    now_ms, died = times.given.now_ms, _somebody_died(times, leader)
    latest_ms = now_ms + NEXT_STEP_MS + (0 if died else leader.timing.gather_ms)
    if leader.rebalanced_ms is not None:
        rest_ms = len(leader.streams) // STREAMS_A_REBALANCE_MS
        latest_ms = max(latest_ms, leader.rebalanced_ms + rest_ms)
    at_ms = leader.timers.at_ms(Alarm.REBALANCE)
    if at_ms is None or at_ms > latest_ms:
        raise Violation("L1", f"a free stream waits until {at_ms}, not {latest_ms}: {times.given}")


def check_lent_no_more(times: Times, leader: Leader) -> None:
    """S4: while the daemon ends its sessions, each stream stays with its last session.

    Raises:
        Violation: one is lent on, and the next daemon keeps it for another.
    """
    for stream, grant_epoch in times.kept.items():
        lent = leader.streams.get(stream)
        if lent and lent.state is StreamState.GRANTING and lent.grant_epoch > grant_epoch:
            raise Violation("S4", f"{stream} is lent although sessions end: {times.given}")


def check_gathered(leader: Leader, now_ms: int, commit_took_ms: int) -> None:
    """I17: a report waits for its commit no longer than reports gather.

    Raises:
        Violation: more than that would come again after a crash.
    """
    if not leader.dirty or leader.is_committing():
        return
    slow_ms = min(2 * commit_took_ms, GATHERED_MS_MAX)
    at_ms = leader.timers.at_ms(Alarm.COMMIT)
    if at_ms is None or at_ms > now_ms + max(leader.timing.commit_ms, slow_ms):
        raise Violation("I17", f"what was reported is committed at {at_ms}, it is {now_ms}")


def _sender(times: Times, leader: Leader) -> BorrowerId | None:
    given = times.given
    if isinstance(given, Received) and given.message.leader_epoch <= leader.leader_epoch:
        return given.message.borrower_id
    return None


def _somebody_died(times: Times, leader: Leader) -> bool:
    held = isinstance(times.given, SessionClosed | Ticked)
    return held and not times.leases.keys() <= leader.members.keys()
