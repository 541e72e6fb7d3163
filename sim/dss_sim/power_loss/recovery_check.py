"""What a daemon finds when it starts after a loss of power, checked against what was promised.

Invariant: every violation is named; an empty list means that all promises hold. All that this
module knows of a run are its promises and the image.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.decode import decode
from dss_core.errors import DssError
from dss_core.filters import TopicFilter
from dss_core.ids import StreamId, StreamName
from dss_core.progress import Ranges
from dss_sim.played_sessions import Attached, offsets_of
from dss_sim.power_loss.adopted_rows import KEY
from dss_sim.power_loss.daemon_parts import DATA, Parts, opened
from dss_sim.power_loss.image import Image
from dss_sim.power_loss.promises import Promises
from dssd.log.port import Append, Appended
from dssd.log.segment.file import (
    ADOPTING_SUFFIX,
    HEADER_BYTES,
    QUARANTINE,
    SEGMENT_SUFFIX,
    parse_name,
)
from dssd.log.segment.frame_scan import BadBytes, FoundFrame, scan_bytes
from dssd.machines.delivery.events import Deliver
from dssd.sessions.client_items import Granted, Opening
from dssd.store.job_rows import ChunkRow
from dssd.store.rows import GrantRow, ProgressRow, SessionRow

K = TypeVar("K")
LOG = f"{DATA}/log/"
READ_BYTES = 1 << 20
START_S_MAX = 60.0
"""Far more than a start on a small image takes."""
EXPECTED_REPORTS = (
    *("torn tail", "lost with the power", "damaged bytes"),
    *("it has no whole header", "no row names it"),
)
"""What a start may report of files after a loss of power; any other report is wrong."""
PROBE = b"the probe's own "


@dataclass(slots=True)
class StreamFound:
    """What a stream gave."""

    start: int
    end: int
    records: dict[int, str] = field(default_factory=dict)
    damaged: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class Checked:
    """The result of one start."""

    violations: list[str] = field(default_factory=list)
    reports: list[str] = field(default_factory=list)
    """What the log reported of its files."""


async def check(root: Path, image: Image, promises: Promises, *, thorough: bool) -> Checked:
    """Start on the files below the root, which hold the image, and check everything.

    ``thorough``: append to every stream, let every group consume that, stop, start again, and check
    once more.
    """
    checked = Checked()
    failed: list[BaseException] = []
    try:
        async with asyncio.timeout(START_S_MAX):
            async with opened(root, failed=failed.append) as parts:
                found = await _look(parts, root, image, promises, checked)
                if thorough:
                    await _probe(parts, found, checked)
                    checked.violations += await _undelivered(parts, found, promises)
            if thorough:
                async with opened(root, failed=failed.append) as parts:
                    await _compare(parts, found, checked)
    except (DssError, OSError, AssertionError, ExceptionGroup) as error:
        checked.violations.append(f"it does not start: {error!r}")
    checked.violations += [f"a part of it failed: {failure!r}" for failure in failed]
    return checked


async def _look(
    parts: Parts, root: Path, image: Image, promises: Promises, checked: Checked
) -> dict[StreamId, StreamFound]:
    found = {
        stream: await _read(parts, stream)
        for topic in parts.catalogue.topics()
        for stream in topic.streams()
    }
    checked.reports += [reason for _, reason in parts.log.quarantined()]
    checked.reports += [f"less than groups have read: {one}" for one in parts.log.short_streams()]
    for violations in (
        _topics(parts, promises),
        _streams(found, promises),
        _whole_frames(found, image, root),
        [one for one in checked.reports if not one.startswith(EXPECTED_REPORTS)],
    ):
        checked.violations += violations
    checked.violations += await _store(parts, promises, found)
    checked.violations += await _together(parts, promises, found)
    return found


async def _read(parts: Parts, stream: StreamId) -> StreamFound:
    bounds = parts.log.bounds(stream)
    found = StreamFound(bounds.start, bounds.end)
    at = bounds.start
    while at < bounds.end:
        chunk = await parts.log.read(stream, at, bytes_max=READ_BYTES)
        found.damaged += chunk.damaged
        if chunk.frames:
            batch = decode(chunk.frames)
            pairs = zip(batch.offsets, batch.payloads, strict=True)
            found.records.update((number, bytes(text).decode()) for number, text in pairs)
        if chunk.next <= at:
            break
        at = chunk.next
    found.records = {at: text for at, text in found.records.items() if at >= bounds.start}
    return found


def _topics(parts: Parts, promises: Promises) -> Iterator[str]:
    found = {topic.name: topic for topic in parts.catalogue.topics()}
    for name, made in promises.topics.items():
        topic = found.get(name)
        if topic is None:
            yield f"topic {name} is gone"
        elif (topic.topic_id, topic.producing.storage_topic_id) != (
            made.topic_id,
            made.storage_topic_id,
        ):
            yield f"topic {name} is another one"
    for name in found.keys() - promises.topics.keys() - promises.maybe:
        yield f"topic {name} was never made, or it came back"


def _streams(found: dict[StreamId, StreamFound], promises: Promises) -> Iterator[str]:
    for stream, one in found.items():
        yield from (f"{stream}: {text}" for text in _stream(stream, one, promises))


def _stream(stream: StreamId, one: StreamFound, promises: Promises) -> Iterator[str]:
    low = promises.starts_min.get(stream, 0)
    high = promises.starts_max.get(stream, 0)
    if not low <= one.start <= high:
        yield f"it starts at {one.start}, not in {low}..{high}"
    for offset, text in promises.stored[stream].items():
        if offset >= one.start and one.records.get(offset) != text:
            yield f"record {offset} is not what was acknowledged: {one.records.get(offset)!r:.40}"
    for offset, text in promises.seen[stream].items():
        if one.records.get(offset, text) != text:
            yield f"offset {offset} was given to {text!r:.40}, and now to another record"
    if one.end < promises.ends_min.get(stream, 0):
        yield f"it ends at {one.end}; offsets below {promises.ends_min[stream]} were given"
    if strangers := set(one.records.values()) - promises.sent[stream]:
        yield f"records that nobody sent: {sorted(strangers)}"
    if len(set(one.records.values())) < len(one.records):
        yield "a record is there twice"
    missing = set(range(one.start, one.end)) - one.records.keys() - _offsets(one.damaged)
    if missing and stream.storage_topic_id not in promises.unsynced:
        yield f"offsets without a record that are not reported as damaged: {sorted(missing)}"


def _offsets(ranges: list[tuple[int, int]] | Ranges) -> set[int]:
    return {offset for start, end in ranges for offset in range(start, end)}


def _whole_frames(found: dict[StreamId, StreamFound], image: Image, root: Path) -> Iterator[str]:
    """Every whole frame on the disk can be read, or was given up, or its file was kept aside.

    A file beside a mark may be a copy that nobody published; promises cover what was published.
    """
    aside = {path.name.split(SEGMENT_SUFFIX)[0] for path in (root / LOG / QUARANTINE).glob("*")}
    for path, file in image.files.items():
        name = Path(path)
        segment = parse_name(name)
        if segment is None or name.suffix != SEGMENT_SUFFIX or QUARANTINE in name.parts:
            continue
        if name.stem in aside or is_marked(image, path):
            continue
        for item in scan_bytes(bytes(file)[HEADER_BYTES:], segment.storage_topic_id):
            one = isinstance(item, FoundFrame) and found.get(
                StreamId(segment[0], item.header.partition)
            )
            if isinstance(item, FoundFrame) and one:
                yield from (f"{text} was whole in {name.name}" for text in _lost(item, one))


def _lost(frame: FoundFrame, one: StreamFound) -> Iterator[str]:
    for offset, payload in enumerate(decode(frame.frame).payloads, frame.header.base_offset):
        if offset >= one.start and one.records.get(offset) != bytes(payload).decode():
            yield f"record {offset} of partition {frame.header.partition} is lost, and"


def is_marked(image: Image, path: str) -> bool:
    """Whether a segment lies beside the mark of a copy."""
    return str(Path(path).with_suffix(ADOPTING_SUFFIX)) in image.files


async def _together(
    parts: Parts, promises: Promises, found: dict[StreamId, StreamFound]
) -> list[str]:
    """Records that were adopted at once are all there with their row, or none of it is."""
    every = {text for one in found.values() for text in one.records.values()}
    violations = []
    for number, texts in promises.together.items():
        row = await parts.store.read(ChunkRow, (KEY, number))
        there = len(texts & every)
        if there not in (0, len(texts)) or (row is not None) != bool(there):
            has = "with" if row is not None else "without"
            violations.append(f"{there} of {len(texts)} records are there {has} their row")
    return violations


async def _store(parts: Parts, promises: Promises, found: dict[StreamId, StreamFound]) -> list[str]:
    groups = {row.group_id: row for row in parts.groups.groups()}
    keys = {(row.name, row.filter) for row in groups.values()}
    names = {group_id: row.name for group_id, row in groups.items()}
    sessions = [kept.row for kept in await parts.store.scan(SessionRow)]
    epochs = {row.client_id: row.session_epoch for row in sessions}
    return [
        *(f"group {key} is gone" for key in promises.groups - keys),
        *await _progress(parts, promises, found, names),
        *await _grants(parts, promises, names),
        *_too_low("session", epochs, promises.sessions),
    ]


async def _progress(
    parts: Parts,
    promises: Promises,
    found: dict[StreamId, StreamFound],
    names: dict[int, str],
) -> list[str]:
    """Progress is exactly what was acknowledged, and the log has all of it."""
    violations: list[str] = []
    floors: dict[tuple[str, StreamId], int] = {}
    for row in [kept.row for kept in await parts.store.scan(ProgressRow)]:
        stream = StreamId(row.storage_topic_id, row.partition)
        if row.group_id not in names or stream not in found:
            continue
        key = (names[row.group_id], stream)
        floors[key] = row.floor
        if row.floor > promises.floors_max.get(key, 0):
            violations.append(f"progress {key} is {row.floor}, more than was asked for")
        if max(row.floor, row.frontier) > found[stream].end:
            violations.append(f"progress {key} is {row.floor}, the log ends before")
    wanted = {key: low for key, low in promises.floors_min.items() if key[1] in found}
    return [*violations, *_too_low("progress", floors, wanted)]


async def _grants(parts: Parts, promises: Promises, names: dict[int, str]) -> Iterator[str]:
    rows = [kept.row for kept in await parts.store.scan(GrantRow)]
    epochs = {
        (names[row.group_id], StreamId(row.storage_topic_id, row.partition)): row.grant_epoch
        for row in rows
        if row.group_id in names
    }
    return _too_low("grant epoch", epochs, promises.epochs_min)


def _too_low(what: str, found: Mapping[K, int], least: Mapping[K, int]) -> Iterator[str]:
    for key, low in least.items():
        if found.get(key, 0) < low:
            yield f"{what} {key} is {found.get(key)}, below {low}"


async def _probe(parts: Parts, found: dict[StreamId, StreamFound], checked: Checked) -> None:
    """Every stream takes a frame at its end."""
    known = max((topic.topic_id for topic in parts.catalogue.topics()), default=0)
    if await parts.store.next_id() <= known:
        checked.violations.append("an id was given again")
    for stream, one in found.items():
        text = f"probe {json.dumps(stream)}"
        topic = parts.catalogue.topic_of(stream)
        columns = Columns([text.encode()], None, topic.name, None, 1)
        frame = build_frame(columns, partition=stream.partition, producer_id=PROBE, sequence=0)
        append = Append(stream, frame, topic.topic_epoch, topic.durability)
        [result] = await parts.log.append([append])
        if not isinstance(result, Appended) or result.base_offset != one.end:
            checked.violations.append(f"{stream}: {result} instead of offset {one.end}")
        one.records[one.end] = text
        one.end += 1


async def _undelivered(
    parts: Parts, found: dict[StreamId, StreamFound], promises: Promises
) -> list[str]:
    """Every group takes the probes, which are the last records of its streams."""
    violations: list[str] = []
    client_id = next(iter(promises.sessions), "prober")
    for group, filter_ in sorted(promises.groups):
        topics = parts.catalogue.meeting(TopicFilter.parse(filter_))
        wanted = {stream for topic in topics for stream in topic.streams()}
        session = await parts.sessions.attach(Opening(client_id, clean_start=False, expiry_s=60))
        client = Attached(session)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(session.run(), name="session")
            tasks.create_task(client.listen(), name="client")
            try:
                await client.subscribe(f"$share/{group}/{filter_}")
                await _take_last(parts, client, {at: found[at].end - 1 for at in wanted})
            except TimeoutError:
                violations.append(f"group {group} does not get what was stored last")
            parts.sessions.detach(session)
    return violations


async def _take_last(parts: Parts, client: Attached, last: dict[StreamId, int]) -> None:
    """Take records until the last one of each stream came.

    Raises:
        TimeoutError: it did not come.
    """
    while last:
        item = await client.next(Deliver)
        lent = {one.grant: one.stream for one in client.heard if isinstance(one, Granted)}
        stream = parts.catalogue.id_of(StreamName.parse(lent[item.grant]))
        if stream in last and offsets_of(item)[-1][1] > last[stream]:
            del last[stream]


async def _compare(parts: Parts, before: dict[StreamId, StreamFound], checked: Checked) -> None:
    for stream, one in before.items():
        again = await _read(parts, stream)
        if (again.records, again.end) != (one.records, one.end):
            checked.violations.append(f"{stream}: a second start finds something else")


def vanished(before: Image, after: Image) -> Iterator[str]:
    """Segment files with bad bytes that a start removed: they may be moved, never lost."""
    kept = {(Path(path).name.split(SEGMENT_SUFFIX)[0], file) for path, file in after.files.items()}
    for path, file in before.files.items():
        segment = parse_name(Path(path))
        if segment is None or not path.endswith(SEGMENT_SUFFIX) or is_marked(before, path):
            continue
        content = bytes(file)[HEADER_BYTES:]
        bad = any(
            isinstance(one, BadBytes) for one in scan_bytes(content, segment.storage_topic_id)
        )
        if bad and (Path(path).stem, file) not in kept:
            yield f"{path} has bad bytes and is gone"
