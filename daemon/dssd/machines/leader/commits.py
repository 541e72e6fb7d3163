"""The commits of a leader: what the next one holds, and when it begins.

There is one commit at a time; later changes go into the next. Reports gather for a while. A change
that somebody waits for (a grant, a final report, a synchronous ack) is committed at once, together
with the gathered reports. Invariant: a stream in `Leader.dirty` has changes that no commit holds;
any other stream is durable as it stands once no commit is under way. This module does not know what
a stream does once it is durable: that is `stream_acts`.
"""

from collections.abc import Iterable, Iterator

from dss_core.ids import StreamId
from dssd.limits import COMMIT_GATHER_MS_MAX, COMMIT_STREAMS_MAX
from dssd.machines.leader import stream_sets
from dssd.machines.leader.events import Committed, Persist
from dssd.machines.leader.lent_stream import LentStream, StreamState
from dssd.machines.leader.state import Alarm, Committing
from dssd.machines.leader.stream_events import Saved
from dssd.machines.leader.turn import LeaderTurn


def mark_dirty(turn: LeaderTurn, stream: StreamId) -> None:
    """The next commit holds the stream."""
    state = turn.state
    if not state.dirty:
        slow_ms = min(2 * state.commit_took_ms, COMMIT_GATHER_MS_MAX)
        gather_ms = max(state.timing.commit_ms, slow_ms)
        state.timers.set(Alarm.COMMIT, turn.now_ms + gather_ms)
    state.dirty[stream] = None


def commit_if_due(turn: LeaderTurn) -> None:
    """Begin a commit, where one is due and none is under way."""
    state = turn.state
    due_ms = state.timers.at_ms(Alarm.COMMIT)
    due = state.urgent or due_ms is None or due_ms <= turn.now_ms
    if not (state.dirty or stream_sets.is_waiting(state)) or state.is_committing() or not due:
        return
    chosen = [state.streams[stream] for stream in _first(state.dirty, COMMIT_STREAMS_MAX)]
    versions = stream_sets.new_versions(state, {lent.stream for lent in chosen})
    if not chosen and not versions:
        return
    for lent in chosen:
        del state.dirty[lent.stream]
    state.timers.clear(Alarm.COMMIT)
    state.urgent = state.urgent and bool(state.dirty)
    state.commit_id += 1
    state.commit_begun_ms = turn.now_ms
    state.in_flight = tuple(_committing(lent) for lent in chosen)
    measure = tuple(
        lent.stream for lent in chosen if lent.unmeasured and lent.state is StreamState.GRANTING
    )
    records = tuple(lent.record() for lent in chosen)
    for lent in chosen:
        lent.grant_unsaved = False
        lent.ended_move = None
    turn.effects.append(Persist(state.commit_id, records, measure, versions))


def _committing(lent: LentStream) -> Committing:
    moved_by = 0 if lent.ended_move is None else lent.ended_move.number
    return Committing(lent.stream, lent.grant_epoch, lent.progress, moved_by, lent.queues)


def _first(streams: Iterable[StreamId], count: int) -> list[StreamId]:
    return [stream for stream, _ in zip(streams, range(count), strict=False)]


def take_committed(turn: LeaderTurn, given: Committed) -> Iterator[tuple[LentStream, Saved]]:
    """A commit is durable: yields its streams, each with its `Saved` event."""
    state = turn.state
    if given.commit_id != state.commit_id or not state.is_committing():
        return
    state.commit_took_ms = turn.now_ms - state.commit_begun_ms
    if state.stream_sets is not None:
        stream_sets.note_durable(state.stream_sets)
    ends = dict(given.ends)
    saved, state.in_flight = state.in_flight, ()
    for stream, grant_epoch, progress, moved_by, queues in saved:
        lent = state.streams.get(stream)
        if lent is not None:
            current = stream not in state.dirty
            end = ends.get(stream)
            yield lent, Saved(grant_epoch, progress, current, end, moved_by, queues)
