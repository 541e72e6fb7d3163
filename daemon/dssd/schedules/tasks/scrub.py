"""The task ``scrub``: the checksums of all sealed segments, at a pace that leaves others the disk.

Each stream of a segment that has damage is told as an event, and the run fails. Invariant: what is
told names offsets, so that an operator can look at them and pass over them.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from dss_core.counted import counted
from dss_core.errors import StreamNotFound, TaskFailed
from dss_core.ids import StreamId
from dss_core.progress import Range, total
from dssd.events.kinds import STREAM_DAMAGED
from dssd.events.model import Event, Note
from dssd.log.upkeep.scrub import Pace, Scrubbed
from dssd.schedules.tasks import parsing
from dssd.schedules.tasks.model import Argument, Given, Say, Task
from dssd.topics.catalogue import Catalogue

DAMAGE_TOLD_MAX = 100
"""Damaged places that one scrub tells as events; the rest is in its output and counted."""


SCRUB_RATE = "16M"
"""What a scrub reads in a second where nothing is said: a tenth of a slow disk, 1.4 TB a day."""


Scrub = Callable[[int, Pace], AsyncGenerator[Scrubbed, None]]
"""Reads the sealed segments of a storage topic."""

NAME = "scrub"


@dataclass(slots=True)
class _Sums:
    segments: int = 0
    bytes: int = 0
    bad: int = 0


def scrub(catalogue: Catalogue, read: Scrub, note: Note) -> Task:
    """The task, over what reads segments."""
    return Task(
        NAME,
        "Read every sealed segment of the log, and compare it with its checksums.",
        _Scrubbing(catalogue, read, note).work,
        (
            Argument("topic", "Only of this topic.", parsing.text),
            Argument("rate", "Read so much a second.", parsing.size_bytes, SCRUB_RATE),
        ),
    )


class _Scrubbing:
    def __init__(self, catalogue: Catalogue, read: Scrub, note: Note) -> None:
        self._catalogue = catalogue
        self._read = read
        self._note = note

    async def work(self, given: Given, say: Say) -> None:
        sums = _Sums()
        pace = _paced(given["rate"])
        for name, storage_topic_id in self._chosen(given["topic"]):
            async with aclosing(self._read(storage_topic_id, pace)) as reading:
                async for found in reading:
                    sums.segments += 1
                    sums.bytes += found.bytes
                    say.now(f"so far: {_read(sums)}, now topic {name}")
                    if not found.is_sound:
                        self._tell(name, storage_topic_id, found, sums, say)
        read = _read(sums)
        if sums.bad:
            why = f"damage in {counted(sums.bad, 'place')} of {read}."
            raise TaskFailed(task=NAME, why=why)
        if sums.segments:
            say(f"{read} were read: all of it is as it was written.")
        else:
            say("nothing was read: no segment is sealed yet.")

    def _chosen(self, topic: str) -> Sequence[tuple[str, int]]:
        known = self._catalogue
        every = (*known.topics(), *known.internal_topics())
        topics = [known.get(topic)] if topic else every
        return [
            (each.name, part.storage_topic_id) for each in topics for part in each.storage_topics
        ]

    def _tell(
        self, name: str, storage_topic_id: int, found: Scrubbed, sums: _Sums, say: Say
    ) -> None:
        places: list[tuple[str, str, dict[str, str]]] = []
        if found.trouble:
            places.append((name, f"{found.path.name}: {found.trouble}", {}))
        for partition, ranges in sorted(found.damaged.items()):
            subject = self._stream(StreamId(storage_topic_id, partition)) or name
            fields = {"start": str(ranges[0][0]), "end": str(ranges[-1][1])}
            places.append((subject, f"{_records(ranges)}, in {found.path.name}", fields))
        for subject, what, fields in places:
            sums.bad += 1
            say(f"{subject}: {what}")
            if sums.bad <= DAMAGE_TOLD_MAX:
                sentence = f"A scrub found damage: {what}."
                self._note(Event(STREAM_DAMAGED, subject, sentence, fields))

    def _stream(self, stream: StreamId) -> str:
        try:
            return str(self._catalogue.name_of(stream))
        except StreamNotFound:  # its topic was removed meanwhile
            return ""


def _read(sums: _Sums) -> str:
    return f"{counted(sums.segments, 'segment')}, {counted(sums.bytes, 'byte')}"


def _records(ranges: Sequence[Range]) -> str:
    count, first, last = total(tuple(ranges)), ranges[0][0], ranges[-1][1] - 1
    where = f"offsets {first} to {last}" if count > 1 else f"offset {first}"
    return f"{counted(count, 'record')}, {where}"


def _paced(rate_bytes: int) -> Pace:
    """Waits so that no more is read than the rate allows, from the first byte on."""
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    read_bytes = 0

    async def pace(size_bytes: int) -> None:
        nonlocal read_bytes
        ahead_s = read_bytes / rate_bytes - (loop.time() - began_s)
        read_bytes += size_bytes
        await asyncio.sleep(max(0.0, ahead_s))

    return pace
