"""Bulk jobs that read the dead letters of a group instead of a topic.

Such a job copies the dead letters that there were when it was planned. The dead letters stay, and a
redrive or a discard meanwhile takes nothing from the job, as their files are held. Invariant: each
range is in one of the group's queues for the topic, and no offset is read twice.
"""

from collections.abc import Iterator
from dataclasses import replace
from shlex import quote

from dss_core.changes import CreateJob, SourceRange
from dss_core.errors import IllegalJob, NothingDead, SourceGone, StreamNotFound
from dss_core.ids import StreamId, StreamName
from dssd.jobs.planner import Measured
from dssd.leaders.dead_letters import DEAD_PIECES_MAX, DeadLetterPlaces
from dssd.log.port import Log
from dssd.loop_yield import LoopTurn
from dssd.topics.catalogue import Topic


class DeadLettersOfJobs:
    """Resolves them."""

    def __init__(self, places: DeadLetterPlaces, log: Log) -> None:
        self._places = places
        self._log = log

    async def resolved(self, change: CreateJob, source: Topic) -> tuple[CreateJob, list[Measured]]:
        """The change with the ranges of present dead letters, or with those of an earlier plan.

        Raises:
            GroupNotFound, GroupAmbiguous, NoneIsDead, TopicNotInGroup, DeadLettersScattered: they
                cannot be read.
            NothingDead: nothing of the topic is dead there.
            IllegalJob, SourceGone: the ranges are none of its dead letters.
        """
        group = self._places.group(change.dead_letters).full_name
        change = replace(change, dead_letters=group)
        if not change.ranges:
            change = replace(change, ranges=await self._ranges(change, source))
        measured = await self._measured(change, source)
        return replace(change, start_us=None, end_us=None), measured

    async def _ranges(self, change: CreateJob, source: Topic) -> tuple[SourceRange, ...]:
        times = change.start_us, change.end_us
        found = await self._places.located(change.dead_letters, source, *times)
        if not found:
            raise NothingDead(
                group=change.dead_letters,
                topic=source.name,
                when="" if times == (None, None) else " of that time",
                command=f"dssctl dlq errors {quote(change.dead_letters)}",
            )
        return tuple(
            SourceRange(str(each.name), *each.stream, each.start, each.end) for each in found
        )

    async def _measured(self, change: CreateJob, source: Topic) -> list[Measured]:
        if len(change.ranges) > DEAD_PIECES_MAX:
            rule = f"it names at most {DEAD_PIECES_MAX:,} pieces of dead letters"
            raise IllegalJob(job=change.name, rule=rule)
        measured: list[Measured] = []
        before: tuple[StreamId, int] | None = None
        turn = LoopTurn()
        for each in sorted(change.ranges, key=_place):
            await turn.give_way()
            stream = self._require_dead(change, source, each)
            if before is not None and before[0] == stream and each.start < before[1]:
                raise IllegalJob(job=change.name, rule=f"{each.stream} is read twice in a part")
            before = stream, each.end
            bounds = self._log.bounds(stream)
            if not bounds.start <= each.start <= each.end <= bounds.end:
                raise SourceGone(
                    job=change.name, stream=each.stream, start=each.start, end=each.end
                )
            records = max(1, bounds.end - bounds.start)
            measured.append(Measured(each, bounds.bytes * (each.end - each.start) // records))
        return measured

    def _require_dead(self, change: CreateJob, source: Topic, each: SourceRange) -> StreamId:
        name, stream = (
            StreamName.parse(each.stream),
            StreamId(each.storage_topic_id, each.partition),
        )
        try:
            queue = self._places.queue_of(change.dead_letters, name)
        except StreamNotFound:
            queue = None
        if name.topic != source.name or queue != stream:
            rule = f"{each.stream} has no dead letters of {source.name} in {change.dead_letters}"
            raise IllegalJob(job=change.name, rule=rule)
        return stream


def effects_on_dead_letters(change: CreateJob) -> Iterator[str]:
    """The effects on the dead letters: they stay."""
    group = change.dead_letters
    yield (
        f"It copies the present dead letters of {group}. They stay where they are, and none is "
        f"delivered by this. To let them come again: dssctl dlq redrive {quote(group)}"
    )
    yield "Those redriven or discarded meanwhile are copied too: they are kept until the job ends."


def _place(each: SourceRange) -> tuple[int, int, int]:
    return each.storage_topic_id, each.partition, each.start
