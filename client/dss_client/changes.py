"""Changes by operators: one frozen value each, for `Operations.plan` and `.apply`.

A group is named as everywhere: NAME, NAME@FILTER or ``$share/NAME/FILTER``; a stream is
``orders/0/3``. A change that a plan answers with is resolved: it names offsets, moves and members,
and applying it does exactly that. Invariant: they are the daemon's own changes, but for
`MoveCursors`, whose target may be written as people write it.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from dss_core import changes as core

AddStorageTopic = core.AddStorageTopic
AdoptSessions = core.AdoptSessions
BuryRetries = core.BuryRetries
CancelJob = core.CancelJob
CloseSession = core.CloseSession
CreateJob = core.CreateJob
CreateSchedule = core.CreateSchedule
DiscardDeadLetters = core.DiscardDeadLetters
EditGroup = core.EditGroup
EditSchedule = core.EditSchedule
EditTopic = core.EditTopic
Evict = core.Evict
GrowTopic = core.GrowTopic
ImportOffsets = core.ImportOffsets
LaneRanges = core.LaneRanges
NamedSession = core.NamedSession
PauseGroup = core.PauseGroup
PauseJob = core.PauseJob
PauseSchedule = core.PauseSchedule
Rebalance = core.Rebalance
RecordSpan = core.RecordSpan
RedeliverRecords = core.RedeliverRecords
RedriveDeadLetters = core.RedriveDeadLetters
RemoveGroup = core.RemoveGroup
RemoveJob = core.RemoveJob
RemoveSchedule = core.RemoveSchedule
RemoveTopic = core.RemoveTopic
ResumeGroup = core.ResumeGroup
ResumeJob = core.ResumeJob
ResumeSchedule = core.ResumeSchedule
RevokeGrant = core.RevokeGrant
RetryNow = core.RetryNow
RunTask = core.RunTask
SetShardCount = core.SetShardCount
SkipRecords = core.SkipRecords
SkipRetries = core.SkipRetries
StreamMove = core.StreamMove
StreamTarget = core.StreamTarget
SwitchTopic = core.SwitchTopic
TransferGrant = core.TransferGrant
Undo = core.Undo

Target: TypeAlias = str | int | datetime
"""``earliest``, ``latest``, a time of the shared grammar, ``=OFFSET``; a number is an offset."""


@dataclass(frozen=True, slots=True)
class MoveCursors:
    """Moves the cursors of a group, `to` a target or `by` a distance from the present floors."""

    group: str
    direction: str
    """``rewind`` (skips nothing), ``skip`` (sends nothing again) or ``seek`` (both)."""
    to: Target | None = None
    by: int | timedelta | None = None
    """Records, or time as it was appended; negative is back."""
    streams: tuple[str, ...] = ()
    """All that the group reads where empty."""
    targets: tuple[StreamTarget, ...] = ()
    """Resolved by a plan: then the rest, the direction aside, is ignored."""


Change: TypeAlias = core.Change | MoveCursors
