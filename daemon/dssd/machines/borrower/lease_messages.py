"""What a borrower of a lease group says to its leader, and how long it may hold what it has.

Parts of `lease_machine`, whose rules decide when. Invariant: the lease runs from a time
at which something was sent that the leader is known to have heard.
"""

from collections.abc import Iterable

from dssd.machines.borrower.events import ResumeDelivery, SendToLeader, SendToRegistry
from dssd.machines.borrower.lease_state import LeaseBorrower
from dssd.machines.borrower.state import (
    FIND_LEADER_MS,
    SERVED,
    BorrowerState,
    Effects,
    HeldStream,
    Timer,
)
from dssd.machines.messages import LeaderWanted, TakenState, UpdateStreamStates


def look_for_leader(state: LeaseBorrower, now_ms: int, effects: Effects) -> None:
    """Ask for the leader, with all that is held; ask again later."""
    state.timers.set(Timer.FIND, now_ms + FIND_LEADER_MS)
    effects.append(SendToRegistry(wanted(state, now_ms)))


def wanted(state: LeaseBorrower, now_ms: int) -> LeaderWanted:
    """How it presents itself."""
    return LeaderWanted(
        state.borrower_id,
        state.leader_epoch,
        state.session_id,
        state.client_id,
        tuple(held.report for held in state.streams.values()),
        state.version,
        now_ms,
    )


def send_states(
    state: LeaseBorrower,
    streams: Iterable[HeldStream],
    now_ms: int,
    effects: Effects,
    *,
    asks_renewal: bool = False,
) -> None:
    """Say how these streams stand; where a renewal is asked for, name all that is taken over."""
    told = list(streams)
    taken = state.streams.values() if asks_renewal else told
    message = UpdateStreamStates(
        state.borrower_id,
        state.leader_epoch,
        now_ms,
        state.version,
        tuple(held.report for held in told if not held.revoking),
        state.version_old if state.state is BorrowerState.UPDATING else None,
        tuple(TakenState(held.report, held.finished) for held in taken if held.revoking),
        asks_renewal,
        state.state is BorrowerState.UNSUBSCRIBING,
    )
    effects.append(SendToLeader(message))


def extend_lease(state: LeaseBorrower, heard_ms: int, now_ms: int, effects: Effects) -> None:
    """The leader heard what was sent at that time; delivery goes on where it was suspended."""
    if heard_ms > now_ms:
        return
    known_ms = state.timers.at_ms(Timer.LEASE)
    if known_ms is None or known_ms < heard_ms + state.lease_ms:
        state.timers.set(Timer.LEASE, heard_ms + state.lease_ms)
        if state.state in SERVED:
            state.timers.set(Timer.SUSPEND, heard_ms + state.suspend_after_ms())
    if state.suspended and now_ms - heard_ms < state.suspend_after_ms():
        state.suspended = False
        state.timers.clear(Timer.FIND)
        effects.append(ResumeDelivery())
