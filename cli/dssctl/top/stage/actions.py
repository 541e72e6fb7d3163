"""The actions of the dashboard: one table of the changes that it can make.

Invariant: an action only names a change; the daemon plans it, a person agrees to the plan, and only
then it is applied. Every action's key needs Shift.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from dss_core import changes
from dss_core.times import parse_time, text_of_us
from dssctl.top.lists.catalogue import BoundsRow
from dssctl.top.lists.groups import GroupRow
from dssctl.top.lists.jobs import JobRow
from dssctl.top.lists.queues import error_name, record_name
from dssctl.top.lists.streams import MemberRow, StreamRow
from dssctl.top.model.picture import Picture
from dssctl.top.model.places import Place

if TYPE_CHECKING:
    from dss_client import Job
    from dss_client.changes import Change


class Spot(NamedTuple):
    """The chosen row of a place."""

    place: Place
    key: str
    row: Any
    picture: Picture

    @property
    def group(self) -> str:
        """The group of the row."""
        if isinstance(self.row, GroupRow):
            return self.row.key
        return str(self.row.group) if _is(self.row, "Stuck") else self.place.group

    @property
    def stream(self) -> str:
        """The stream of the row."""
        if isinstance(self.row, StreamRow | BoundsRow) or _is(self.row, "Stuck"):
            return str(self.row.stream)
        return self.place.stream

    @property
    def job(self) -> "Job | None":
        """The present bulk job of the row."""
        row, place = self.row, self.place
        name = row.job.name if isinstance(row, JobRow) else place.name
        is_one = isinstance(row, JobRow) or place.noun == "job"
        return self.picture.items.jobs.get(name) if is_one else None

    @property
    def paused(self) -> bool:
        """Whether its group is paused."""
        group = self.picture.items.groups.get(self.group)
        return group is not None and group.paused


@dataclass(frozen=True, slots=True)
class Action:
    """Something that can be changed."""

    key: str
    """The key, typed with Shift."""
    title: Callable[[Spot], str]
    help: str
    applies: Callable[[Spot], bool]
    change: "Callable[[Spot, str], Change] | None"
    """The change, from the row and the typed text; None: it triggers the schedule there."""
    asks: str = ""
    """What must be typed first; empty: nothing."""
    accepts: Callable[[Spot], str] = lambda _spot: ""
    """What may be typed."""
    suggests: str = ""
    """The text that is in the field at first."""
    severe: Callable[[Spot], str] | None = None
    """What must be typed to agree, because the change cannot be undone."""


def _is(row: Any, kind: str) -> bool:  # noqa: ANN401 -- rows of any list
    """Whether a row has this client class, which is not loaded just to ask."""
    return type(row).__name__ == kind


_QUEUE_ROWS = frozenset({"ErrorCount", "KeyCount", "QueueEntry"})


def _in_queue(spot: Spot) -> bool:
    """Whether it is a part of a queue, and not a group as a whole."""
    return type(spot.row).__name__ in _QUEUE_ROWS or spot.place.noun == "dead-letter"


def _waits(spot: Spot) -> bool:
    return _is(spot.row, "QueueEntry") and spot.row.level == "retry"


def _is_dead(spot: Spot) -> bool:
    return _in_queue(spot) and not _waits(spot)


def _records_of(spot: Spot) -> dict[str, Any]:
    """The records that a row of a queue stands for."""
    row, place = spot.row, spot.place
    if _is(row, "ErrorCount"):
        return {"error": error_name(row)}
    if _is(row, "KeyCount"):
        return {"error": place.name if place.noun == "dead-keys" else "", "key": row.key}
    name = place.name if place.noun == "dead-letter" else record_name(row)
    stream, _, offset = name.rpartition("@")
    return {"stream": stream, "offset": int(offset)}


def _told(spot: Spot) -> str:
    chosen = _records_of(spot)
    if "offset" in chosen:
        return f"{chosen['stream']}@{chosen['offset']} of {spot.group}"
    named = chosen.get("key")
    of_key = "" if named is None else f" of the key {named.decode(errors='backslashreplace')}"
    error = chosen["error"][:8]
    return f"all{of_key}{f' of the error {error}' if error else ''} in {spot.group}"


def _redrive(spot: Spot, typed: str) -> "Change":
    chosen = _records_of(spot)
    canary = int(typed) if typed.isascii() and typed.isdecimal() and int(typed) else None
    return changes.RedriveDeadLetters(spot.group, **chosen, canary=canary)


def _has_group(spot: Spot) -> bool:
    return bool(spot.group) and not _in_queue(spot)


def _of_group_stream(spot: Spot) -> bool:
    return bool(spot.group and spot.stream)


def _on_record(spot: Spot) -> bool:
    return _of_group_stream(spot) and (_is(spot.row, "Record") or spot.place.offset is not None)


def _client_of(spot: Spot) -> str:
    if _is(spot.row, "SessionSummary"):
        return str(spot.row.client_id)
    return spot.place.name if spot.place.noun == "session" else ""


def _number_of(spot: Spot) -> int:
    if _is(spot.row, "Operation"):
        return int(spot.row.number)
    named = spot.place.name if spot.place.noun == "operation" else ""
    return int(named) if named.isascii() and named.isdecimal() else 0


def _topic_of(spot: Spot) -> str:
    if _is(spot.row, "TopicSummary"):
        return str(spot.row.topic.name)
    return spot.place.name if spot.place.noun == "topic" else ""


def _streams(spot: Spot) -> tuple[str, ...]:
    return (spot.stream,) if spot.stream else ()


def _what(spot: Spot) -> str:
    return f"stream {spot.stream} of {spot.group}" if spot.stream else spot.group


def _move(direction: str) -> "Callable[[Spot, str], Change]":
    def change(spot: Spot, typed: str) -> "Change":
        from dss_client.changes import MoveCursors

        if typed.isascii() and typed.isdecimal():
            by = int(typed) * (-1 if direction == "rewind" else 1)
            return MoveCursors(spot.group, direction, by=by, streams=_streams(spot))
        to = _resolved(typed, spot.picture.now_ms)
        return MoveCursors(spot.group, direction, to=to, streams=_streams(spot))

    return change


def _resolved(typed: str, now_ms: int) -> str:
    """A typed time as a fixed moment, so that its plan and its command line mean the same.

    Raises:
        IllegalTime: it is no target.
    """
    if typed in {"earliest", "latest"} or (typed[:1] == "=" and typed[1:].isdecimal()):
        return typed
    parsed = parse_time(typed, now_us=now_ms * 1_000)
    return text_of_us(parsed) if isinstance(parsed, int) else typed


def _targets(furthest: str, direction: str, spot: Spot) -> str:
    """The targets that may be typed; an offset needs one stream."""
    offset = "=OFFSET, " if spot.stream else ""
    return f"{furthest}, -15m, a time, {offset}or a number: so many records {direction}"


def _pause(spot: Spot, _typed: str) -> "Change":
    group = spot.group
    return changes.ResumeGroup(group) if spot.paused else changes.PauseGroup(group)


def _schedule_of(spot: Spot) -> str:
    return str(spot.row.name) if _is(spot.row, "Schedule") else ""


def _pause_schedule(spot: Spot, _typed: str) -> "Change":
    name = _schedule_of(spot)
    return changes.ResumeSchedule(name) if spot.row.paused else changes.PauseSchedule(name)


def _job_goes_on(spot: Spot) -> bool:
    return spot.job is not None and not spot.job.has_ended


def _job_ended(spot: Spot) -> bool:
    return spot.job is not None and spot.job.has_ended


def _job_name(spot: Spot) -> str:
    return spot.job.name if spot.job is not None else ""


def _job_pauses(spot: Spot) -> str:
    is_paused = spot.job is not None and spot.job.state == "paused"
    return f"{'Resume' if is_paused else 'Pause'} the job {_job_name(spot)}"


def _pause_job(spot: Spot, _typed: str) -> "Change":
    name, is_paused = _job_name(spot), spot.job is not None and spot.job.state == "paused"
    return changes.ResumeJob(name) if is_paused else changes.PauseJob(name)


def _offset_of(spot: Spot) -> int:
    return int(spot.row.offset) if _is(spot.row, "Record") else spot.place.offset or 0


def _remove(spot: Spot, _typed: str) -> "Change":
    topic = _topic_of(spot)
    return changes.RemoveTopic(topic) if topic else changes.RemoveGroup(spot.group)


def _removed(spot: Spot) -> str:
    return _topic_of(spot) or spot.group


ACTION_TABLE = (
    Action(
        "P", lambda spot: f"{'Resume' if spot.paused else 'Pause'} {spot.group}",
        "pause or resume the group", _has_group, _pause,
    ),
    Action(
        "P", lambda spot: f"{'Resume' if spot.row.paused else 'Pause'} {_schedule_of(spot)}",
        "pause or resume the schedule", lambda spot: bool(_schedule_of(spot)), _pause_schedule,
    ),
    Action(
        "T", lambda spot: f"Trigger {_schedule_of(spot)}",
        "run the schedule's task now; its next due time stays",
        lambda spot: bool(_schedule_of(spot)), None,
    ),
    Action("P", _job_pauses, "pause or resume the bulk job", _job_goes_on, _pause_job),
    Action(
        "R", lambda spot: f"Rebalance {spot.group}", "spread the streams evenly over the members",
        _has_group, lambda spot, _: changes.Rebalance(spot.group),
    ),
    Action(
        "W", lambda spot: f"Rewind {_what(spot)}", "deliver records again", _has_group,
        _move("rewind"), asks="Back to", suggests="-15m",
        accepts=lambda spot: _targets("earliest", "back", spot),
    ),
    Action(
        "F", lambda spot: f"Skip forward {_what(spot)}", "pass over records", _has_group,
        _move("skip"), asks="Forward to", suggests="latest",
        accepts=lambda spot: _targets("latest", "forward", spot),
        severe=lambda spot: spot.group.partition("@")[0],
    ),
    Action(
        "E", lambda spot: f"Evict {spot.row.member.client_id} from {spot.group}",
        "end the member's subscription", lambda spot: isinstance(spot.row, MemberRow),
        lambda spot, _: changes.Evict(spot.group, spot.row.member.borrower_id),
    ),
    Action(
        "T", lambda spot: f"Transfer {_what(spot)}", "give the stream to a certain member",
        _of_group_stream,
        lambda spot, typed: changes.TransferGrant(spot.group, spot.stream, typed),
        asks="To the member, by its client id",
    ),
    Action(
        "V", lambda spot: f"Revoke {_what(spot)}", "take the stream from its holder",
        _of_group_stream, lambda spot, _: changes.RevokeGrant(spot.group, spot.stream),
    ),
    Action(
        "S", lambda spot: f"Pass over record {_offset_of(spot)} of {_what(spot)}",
        "acknowledge the record by hand", _on_record,
        lambda spot, _: changes.SkipRecords(spot.group, spot.stream, _offset_of(spot)),
    ),
    Action(
        "D", lambda spot: f"Redrive {_told(spot)}",
        "deliver dead letters again, some of them first", _is_dead, _redrive,
        asks="How many first; 0 for all at once", suggests="10",
    ),
    Action(
        "X", lambda spot: f"Discard {_told(spot)}", "give dead letters up for good", _is_dead,
        lambda spot, _: changes.DiscardDeadLetters(spot.group, **_records_of(spot)),
        severe=lambda spot: spot.group.partition("@")[0],
    ),
    Action(
        "N", lambda spot: f"Try {_told(spot)} now", "deliver a waiting record at once", _waits,
        lambda spot, _: changes.RetryNow(spot.group, **_records_of(spot)),
    ),
    Action(
        "K", lambda spot: f"Pass over {_told(spot)}", "pass over a waiting record", _waits,
        lambda spot, _: changes.SkipRetries(spot.group, **_records_of(spot)),
        severe=lambda spot: spot.group.partition("@")[0],
    ),
    Action(
        "B", lambda spot: f"Give up {_told(spot)}", "make a waiting record a dead letter",
        _waits, lambda spot, _: changes.BuryRetries(spot.group, **_records_of(spot)),
    ),
    Action(
        "U", lambda spot: f"Undo operation {_number_of(spot)}", "take the operation back",
        lambda spot: _number_of(spot) > 0, lambda spot, _: changes.Undo(_number_of(spot)),
    ),
    Action(
        "C", lambda spot: f"Close the session of {_client_of(spot)}", "end the client's session",
        lambda spot: bool(_client_of(spot)),
        lambda spot, _: changes.CloseSession(_client_of(spot)), severe=_client_of,
    ),
    Action(
        "C", lambda spot: f"Cancel the job {_job_name(spot)}",
        "end the bulk job; what it published stays", _job_goes_on,
        lambda spot, _: changes.CancelJob(_job_name(spot)), severe=_job_name,
    ),
    Action(
        "X", lambda spot: f"Forget the job {_job_name(spot)}",
        "forget a bulk job that has ended", _job_ended,
        lambda spot, _: changes.RemoveJob(_job_name(spot)), severe=_job_name,
    ),
    Action(
        "X", lambda spot: f"Remove {_removed(spot)}", "remove the group or the topic",
        lambda spot: bool(_topic_of(spot)) or (_has_group(spot) and not spot.stream), _remove,
        severe=lambda spot: _removed(spot).partition("@")[0],
    ),
)  # fmt: skip


def actions_at(spot: Spot | None) -> tuple[Action, ...]:
    """The changes that are possible at a spot."""
    if spot is None:
        return ()
    return tuple(action for action in ACTION_TABLE if action.applies(spot))


def action_of(key: str, spot: Spot | None) -> Action | None:
    """The action of a key there."""
    return next((action for action in actions_at(spot) if action.key == key), None)
