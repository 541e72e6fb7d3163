"""The reasons why a record is not delivered: a code, a sentence and the next command for each.

Invariant: pure; each reason has one function or row here, and its code is stable. The functions get
all facts as arguments and ask nothing.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from dss_core.answers import Reason
from dss_core.counted import counted
from dss_core.progress import covers
from dss_core.times import text_of_ms, text_of_span
from dssd.leaders.lag import named
from dssd.limits import ISOLATE_AFTER_DOUBTS
from dssd.machines.delivery.standing import Hindrance, Place, Standing
from dssd.machines.leader.events import LeaderView, StreamView
from dssd.machines.messages import Stall
from dssd.sessions.listing import HeldRecord
from dssd.store.rows import GroupRow

PAUSED = "paused"
"""The code of a group that an operator paused."""
QUEUES_FULL = "queues-full"
"""The code of a record that failed, or waits, because the queues of its stream are full."""
REWIND = "offsets.rewind"
"""The kind of an operation that only redelivers records."""


@dataclass(frozen=True, slots=True)
class Now:
    """The same moment by both clocks."""

    wall_ms: int
    machine_ms: int

    def wall(self, machine_ms: int) -> int:
        """The wall time of a time of the machines."""
        return self.wall_ms + machine_ms - self.machine_ms

    def since(self, machine_ms: int) -> str:
        """How long ago, in words."""
        return text_of_span(max(0, self.machine_ms - machine_ms))

    def until(self, machine_ms: int) -> str:
        """How long it still takes, in words."""
        return text_of_span(max(0, machine_ms - self.machine_ms))


@dataclass(frozen=True, slots=True)
class RecordAsked:
    """The record that the question is about."""

    group: GroupRow
    stream: str
    offset: int

    @property
    def group_name(self) -> str:
        """As a shell takes it."""
        return quoted(self.group)

    def why(self, offset: int) -> str:
        """The command that asks about another offset of the stream."""
        return f"dssctl groups why {self.group_name} --stream {self.stream} --offset {offset}"

    @property
    def describe(self) -> str:
        """The command that shows the group."""
        return f"dssctl groups describe {self.group_name}"

    @property
    def skip(self) -> str:
        """The command that passes over the record."""
        return f"dssctl records skip {self.group_name} {self.stream} {self.offset}"


def quoted(group: GroupRow) -> str:
    """The group's full name, as a shell takes it."""
    return shlex.quote(group.full_name)


# What is done


def done(
    asked: RecordAsked, view: StreamView, kind: str | None, kept_from: int, moved_by: str
) -> Reason:
    """The group is done with the offset; ``kind`` is what the log says of it, None: it is gone.

    ``moved_by`` is the kind of the operation that moved the cursor last.
    """
    if kind == "damaged" or covers(view.fate.damaged, asked.offset):
        command = f"dssctl events --subject {asked.stream}"
        return Reason("damaged", "It is damaged, and the group passed over it.", command)
    if kind == "filtered":
        wanted = asked.group.filter
        return Reason("filtered", f"The group's filter {wanted} does not match its subject.")
    if kind == "lost":
        return Reason("lost", "No record has this offset: a loss of power left a gap there.")
    return _done_by_somebody(asked, view, kind is None, kept_from, moved_by)


def _done_by_somebody(
    asked: RecordAsked, view: StreamView, is_gone: bool, kept_from: int, moved_by: str
) -> Reason:
    moved, began = view.cursor_generation, began_at(view)
    if not moved and asked.offset < began:
        told = f"It lies before {began}, where the group began to count in this stream."
        rewind = f"dssctl offsets rewind {asked.group_name} --stream {asked.stream}"
        return Reason("before-start", told, "" if is_gone else f"{rewind} --to ={asked.offset}")
    if is_gone:
        told = f"Retention took it; the stream begins at {kept_from}. The group was done with it"
        return Reason("done", f"{told}: how, is not known any more.")
    if moved:
        told = "It was acknowledged, or an operator moved the group past it"
        # A rewind skips nothing, so it must not be given as the reason.
        rewound, other = (
            f" before operation {moved}, a rewind.",
            f": operation {moved} was the last",
        )
        told += rewound if moved_by == REWIND else f"{other} to move it."
        return Reason("done", told, f"dssctl ops show {moved}")
    return Reason("acked", "The group acknowledged it.")


def began_at(view: StreamView) -> int:
    """The first offset that the fates count, if nothing moved the cursor."""
    progress = view.progress
    return progress.floor + progress.acked_above_floor() - sum(view.fate.counts)


# What is not there


def gone(kept_from: int, topic: str) -> Reason:
    """Retention took a record that the group had not finished."""
    told = f"Retention took it before the group was done with it; the stream begins at {kept_from}."
    return Reason("gone", told, f"dssctl topics describe {topic}")


def not_wanted(kind: str, asked: RecordAsked) -> Reason | None:
    """The group will skip it when it gets there."""
    if kind == "filtered":
        told = f"The group's filter {asked.group.filter} does not match its subject"
        return Reason("filtered", f"{told}: it is passed over when its turn comes.")
    if kind == "lost":
        told = "No record has this offset: a loss of power left a gap there."
        return Reason("lost", f"{told} It is passed over when its turn comes.")
    return None


# Nobody has it


def not_lent(
    asked: RecordAsked,
    view: StreamView,
    live: LeaderView | None,
    now: Now,
    waits_for: Sequence[str] = (),
) -> Reason | None:
    """Why the stream has no reader now; None: a member holds it."""
    rest = _durable_rest(view, asked.offset, now)
    members = 0 if live is None else sum(not member.leaving for member in live.members)
    if asked.group.paused or not members:
        return paused(asked) if asked.group.paused else no_members(asked)
    since_ms = now.wall_ms - view.state_age_ms
    age = text_of_span(view.state_age_ms)
    match view.state:
        case "free":
            told = f"Nobody of the {members} members holds the stream since {age}"
            why = ": an operation moves its cursor first." if view.moving else "."
            return rest or Reason("free", told + why, asked.describe, since_ms=since_ms)
        case "granting":
            told = f"The stream is being lent to {view.client_id} since {age}."
            return rest or Reason("granting", told, "", view.client_id, since_ms)
        case "revoking" | "revoked":
            told = f"{view.client_id} is asked to give the stream back since {age}"
            bound = "it does so, or loses it with its lease."
            return Reason("revoking", f"{told}: {bound}", asked.describe, view.client_id, since_ms)
        case "closed" | "rehoming":
            return Reason(
                view.state,
                _between_storage_topics(age, waits_for),
                asked.describe,
                since_ms=since_ms,
            )
        case _:
            return None


def _between_storage_topics(age: str, waits_for: Sequence[str]) -> str:
    if waits_for:
        return (
            f"The stream is closed since {age}: keys of it come from {named(waits_for)}, which the "
            "group has not read to the end."
        )
    return (
        f"The stream is read to the end since {age}; the entries of its queues are being moved to "
        "the streams that have its keys now."
    )


def no_members(asked: RecordAsked, retrying: int = 0) -> Reason:
    """The group has no member to deliver to, or to retry with."""
    name, wanted = shlex.quote(asked.group.name), shlex.quote(asked.group.filter)
    command = f"dssctl consume {wanted} --group {name}"
    told = "Nobody is a member of the group"
    if retrying:
        waits = "waits" if retrying == 1 else "wait"
        told += f", and {counted(retrying, 'record')} {waits} to be tried again"
    return Reason("no-members", f"{told}.", command)


def _durable_rest(view: StreamView, offset: int, now: Now) -> Reason | None:
    for start, end, due in view.fate.rests:
        if start <= offset < end and due.at_ms > now.wall_ms:
            left_ms = min(due.at_ms - now.wall_ms, due.delay_ms)
            suspects = [each for each in view.fate.doubts if each[2] >= ISOLATE_AFTER_DOUBTS]
            alone = any(low <= offset < high for low, high, _ in suspects)
            why = (
                "Clients vanished with it; it is sent alone"
                if alone
                else "A user refused it; it comes"
            )
            told = f"{why} again in {text_of_span(left_ms)}."
            return Reason("resting", told, until_ms=now.wall_ms + left_ms)
    return None


def paused(asked: RecordAsked) -> Reason:
    """An operator paused the group."""
    until_ms = asked.group.paused_until_ms
    told = "The group is paused"
    told += "." if until_ms is None else f" until {text_of_ms(until_ms)}."
    command = f"dssctl groups resume {asked.group_name}"
    return Reason(PAUSED, told, command, until_ms=until_ms)


def holder_gone(asked: RecordAsked, view: StreamView) -> Reason:
    """The session of the holder does not deliver the stream."""
    told = f"{view.client_id} holds the stream, and is not connected or does not read it yet"
    return Reason("holder-gone", f"{told}.", asked.describe, view.client_id)


# Somebody has it


def held(asked: RecordAsked, client_id: str, found: HeldRecord, ahead: int, now: Now) -> Reason:
    """The state of the record at the holder."""
    standing = found.standing
    own = out(asked, client_id, standing, now)
    if own is not None:
        return own
    return _hindered(asked, client_id, found) or _waits_for_its_turn(standing, client_id, ahead)


def out(asked: RecordAsked, client_id: str, standing: Standing, now: Now) -> Reason | None:
    """The reason if its client has it or will get it again; else None."""
    match standing.place:
        case Place.HANDED_OUT:
            return _handed_out(asked, client_id, standing, now)
        case Place.SENT:
            told = f"It was sent to {client_id}, and waits there to be handed out."
            return Reason("sent", told, client_id=client_id, attempt=standing.attempts)
        case Place.RESTING | Place.MOVING:
            return _later(asked, client_id, standing, now)
        case Place.SUSPECT:
            return _suspect(asked, client_id, standing, now)
        case Place.GIVEN_BACK:
            return _given_back(asked, client_id)
        case Place.DONE | Place.DUE | Place.READ | Place.NOT_READ:
            return None


def _handed_out(asked: RecordAsked, client_id: str, standing: Standing, now: Now) -> Reason:
    told = f"It is handed out to {client_id}, attempt {standing.attempts}"
    since_ms = until_ms = None
    if standing.since_ms is not None:
        since_ms = now.wall(standing.since_ms)
        told += f", since {now.since(standing.since_ms)}"
    if standing.until_ms is not None:
        until_ms = now.wall(standing.until_ms)
        told += f"; its ack wait ends in {now.until(standing.until_ms)}"
    attempt = standing.attempts
    return Reason("handed-out", f"{told}.", asked.skip, client_id, since_ms, until_ms, attempt)


def _later(asked: RecordAsked, client_id: str, standing: Standing, now: Now) -> Reason:
    """It waits out its backoff, or moves to a queue."""
    if standing.place is Place.MOVING and standing.are_queues_full:
        return _queues_full(asked, client_id, standing)
    attempt, until_ms, until = standing.attempts, None, ""
    if standing.until_ms is not None:
        until_ms, until = now.wall(standing.until_ms), now.until(standing.until_ms)
    if standing.place is Place.RESTING:
        told = f"It waits out its backoff after attempt {attempt}, and comes again in {until}."
    elif until:
        told = "It failed, and could not be appended to a queue of the group, as on a full disk; "
        told += f"the append is tried again in {until}."
    else:
        told = "It failed, and is on its way to a queue of the group."
    return Reason(standing.place.value, told, "", client_id, None, until_ms, attempt)


def _queues_full(asked: RecordAsked, client_id: str, standing: Standing) -> Reason:
    """The queues are full, so the failed record stays in its stream and its key waits behind it."""
    told = (
        "It waits in its stream for room: the queues of the stream, with its dead letters, hold as "
        "much as they may. Other keys go on"
    )
    command = f"dssctl dlq errors {asked.group_name}"
    return Reason(QUEUES_FULL, f"{told}.", command, client_id, attempt=standing.attempts)


def _suspect(asked: RecordAsked, client_id: str, standing: Standing, now: Now) -> Reason:
    attempt, alone = standing.attempts, standing.alone
    told = f"Clients vanished with it, last at attempt {attempt}, so it is sent alone"
    until_ms = None
    if alone is not None:
        told += f", after the record at {alone}"
    elif standing.until_ms is not None:
        until_ms = now.wall(standing.until_ms)
        told += f", in {now.until(standing.until_ms)}"
    return Reason("suspect", f"{told}.", asked.skip, client_id, None, until_ms, attempt, alone)


def _given_back(asked: RecordAsked, client_id: str) -> Reason:
    told = f"{client_id} gives the stream back; it comes under the next grant."
    return Reason("revoking", told, asked.describe, client_id)


_STALLS = {
    Hindrance.UNREADABLE: Stall.UNREADABLE,
    Hindrance.DAMAGED: Stall.DAMAGED,
    Hindrance.CAPPED: Stall.UNACKED,
}


def _hindered(asked: RecordAsked, client_id: str, found: HeldRecord) -> Reason | None:
    floor, hindrance = found.standing.floor, found.standing.hindrance
    if hindrance in _STALLS:
        return stalled(asked, _STALLS[hindrance], floor, client_id)
    suspended = f"The session of {client_id} does not hear from the leader of the group."
    suspects = f"{client_id} must first settle earlier records that it has in flight."
    by_hindrance = {
        Hindrance.PAUSED: paused(asked),
        Hindrance.ENDING: _given_back(asked, client_id),
        Hindrance.SUSPENDED: Reason("suspended", suspended, asked.describe, client_id),
        Hindrance.SUSPECTS_OUT: Reason("suspects-out", suspects, asked.why(floor), client_id),
        Hindrance.NO_CREDIT: _no_credit(asked, client_id, found),
    }
    return by_hindrance.get(hindrance)


def stalled(asked: RecordAsked, stall: Stall, floor: int, client_id: str = "") -> Reason:
    """Nothing of the stream is delivered."""
    stream = asked.stream
    match stall:
        case Stall.UNREADABLE:
            told = f"{stream} cannot be read behind {floor}; the read is tried again."
            command = f"dssctl events --subject {stream}"
            return Reason("unreadable", told, command, client_id, blocked_by=floor)
        case Stall.DAMAGED:
            told = f"{stream} holds damaged records behind {floor}, and the group stalls at damage."
            command = f"dssctl groups edit {asked.group_name} --on-damage pass"
            return Reason("damage-ahead", told, command, client_id, blocked_by=floor)
        case Stall.UNACKED | Stall.NONE:
            told = f"Too many records are acknowledged above the one at {floor}, which is not."
            return Reason("capped", told, asked.why(floor), client_id, blocked_by=floor)


def failing(asked: RecordAsked, failures: int, client_id: str) -> Reason:
    """The record at the floor fails again and again: naks, or expired ack waits."""
    told = f"The record at {asked.offset} failed {failures} times: it was refused, or its ack wait "
    return Reason("failing", f"{told}ran out.", asked.skip, client_id, blocked_by=asked.offset)


def _no_credit(asked: RecordAsked, client_id: str, found: HeldRecord) -> Reason:
    taken = ", ".join(f"{out:,} of {group}" for group, out in found.taken)
    told = f"The credit of {client_id} is used up: {taken} in flight, of {found.credit_records:,}"
    floor = found.standing.floor
    command = asked.describe if floor == asked.offset else asked.why(floor)
    return Reason("no-credit", f"{told} records.", command, client_id)


def _waits_for_its_turn(standing: Standing, client_id: str, ahead: int) -> Reason:
    attempt = standing.attempts
    if standing.place is Place.DUE:
        told = f"It comes again to {client_id} as soon as it is its turn."
        return Reason("due", told, client_id=client_id, attempt=attempt)
    told = f"{client_id} has not come to it: {ahead:,} records before it are not done."
    return Reason("behind", told, client_id=client_id, attempt=attempt)
