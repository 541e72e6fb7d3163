"""Mistakes of the log with its files, found by the log on a disk of sectors."""

from dataclasses import dataclass

from dss_sim.mutants.planting import Mutant

JUDGE = "dss_sim.log.run"


@dataclass(frozen=True, slots=True)
class OnDisk(Mutant):
    """A mutant that this simulator is to find."""

    judge: str = JUDGE


IN_DISK = (
    OnDisk(
        "answered before the sync",
        "a frame is answered as stored while it lies in the page cache",
        "log/write/group_commit.py",
        "            try:\n                file.sync()\n",
        "            try:\n                pass\n",
    ),
    OnDisk(
        "answered after the disk failed",
        "any error of the disk is taken for a full one",
        "log/write/group_commit.py",
        "        if refused is None:\n            raise error\n        topic = pending.topic\n",
        "        if refused is None:\n            refused = DiskFull()\n"
        "        topic = pending.topic\n",
    ),
    OnDisk(
        "refused frames stay in the file",
        "what a full disk refused is overwritten later, and not cut off",
        "log/write/group_commit.py",
        "        topic.file.cut_back(pending.size_before)\n",
        "        topic.file.size = pending.size_before\n",
    ),
    OnDisk(
        "refused offsets stay given",
        "the offsets of frames that a full disk refused are not taken back",
        "log/write/group_commit.py",
        "            topic.ends[partition] = stream.base\n",
        "            pass\n",
    ),
    OnDisk(
        "directory not synced",
        "a new file has a name in the page cache only",
        "log/segment/file.py",
        "    sync_directory(path.parent)\n    return size\n",
        "    return size\n",
    ),
    OnDisk(
        "named before it is durable",
        "a new file gets its name before its bytes are on the disk",
        "log/segment/file.py",
        "                size += len(piece)\n            os.fsync(fd)\n",
        "                size += len(piece)\n",
    ),
    OnDisk(
        "row after its file",
        "a file takes frames while the commit of its row is under way",
        "log/upkeep/housekeeper.py",
        '        await self._store.commit([Put(segment.row("active", HEADER_BYTES))])\n',
        '        row = [Put(segment.row("active", HEADER_BYTES))]\n'
        "        self.late = asyncio.ensure_future(self._store.commit(row))\n",
    ),
    OnDisk(
        "watermark ahead of the file",
        "a watermark speaks of more than is durable",
        "log/upkeep/housekeeper.py",
        '        await self._store.commit([Put(segment.row("active", marked.size))])\n',
        '        await self._store.commit([Put(segment.row("active", marked.size + 512))])\n',
    ),
    OnDisk(
        "deleted before the low watermark",
        "retention deletes files while the commit that allows it is under way",
        "log/upkeep/trimmer.py",
        "        if raised and not await self._store_starts(state, raised):\n"
        "            return 0\n",
        "        self.late = asyncio.ensure_future(self._store_starts(state, raised))\n",
    ),
    OnDisk(
        "low watermark forgotten",
        "a start takes all streams to begin at their first record",
        "log/recovery/topic.py",
        "[Stream(start, start) for start in starts]",
        "[Stream(0, start) for start in starts]",
    ),
    OnDisk(
        "read up to the damage",
        "a start reads a file up to the first bad byte, as if a torn tail began there",
        "log/recovery/segment_content.py",
        "                _count_as_sent(self._topic.producers, item.header)\n\n",
        "                _count_as_sent(self._topic.producers, item.header)\n            break\n\n",
    ),
    OnDisk(
        "torn frame taken as whole",
        "of the last frame of a file only the head is checked",
        "log/segment/frame_scan.py",
        "        return Bad(position, min(position + header.frame_bytes, self._end), header)\n",
        "        end = index + header.frame_bytes\n"
        "        if end < len(self._source.bytes):\n"
        "            return Bad(position, min(position + header.frame_bytes, self._end), header)\n"
        "        said = (header.partition, header.producer_id, header.sequence, header.records)\n"
        "        frame = (index, end, *said, header.base_offset, header.append_time_us)\n"
        "        self._source.bytes = self._source.bytes.ljust(end, b'\\0')\n"
        "        return Stretch(position, self._source.bytes, [frame])\n",
    ),
    OnDisk(
        "tail taken up where it lies",
        "what the page cache shows above the watermark counts as durable after a kill",
        "log/recovery/topic.py",
        "        elif outcome is Outcome.TAIL:\n",
        "        elif outcome is Outcome.TAIL and is_last and not content.torn_bytes:\n"
        "            runs, size = recovery.joined(content), content.size\n"
        "            created = row.created_at_ms\n"
        "            segment = Segment(segment_id, created, runs, None, size, watermark, size)\n"
        "            segment.frames = content.frames_kept + content.frames_above\n"
        "            segment.marks = content.marks\n"
        "            self._add(segment)\n"
        "            self._take_up(segment)\n"
        "        elif outcome is Outcome.TAIL:\n",
    ),
    OnDisk(
        "bad file deleted",
        "a file of which the good part was moved on is deleted, its bad part with it",
        "log/recovery/outcomes.py",
        "        if bad:\n            path = self._paths.segment(old)\n",
        "        if False:\n            path = self._paths.segment(old)\n",
    ),
    OnDisk(
        "empty successor taken for a stray",
        "a file without a frame is set aside though a row names it, and its snapshot is deleted",
        "log/recovery/topic.py",
        "        there = [row for row in rows if row not in never]\n",
        "        there = [row for row in rows if row not in never]\n        rows[:] = there\n",
    ),
    OnDisk(
        "producers not read",
        "a start does not learn from the frames what producers had sent",
        "log/recovery/segment_content.py",
        "            remember(partition, producer, sequence, Answer(own_base, records, time_us))\n",
        "",
    ),
    OnDisk(
        "producers go with a moved file",
        "a file of which all was moved on takes along the only snapshot of the producers",
        "log/recovery/outcomes.py",
        "            await asyncio.to_thread(snapshots.hand_down, self._paths, old, new)\n",
        "            pass\n",
    ),
    OnDisk(
        "producers forgotten too soon",
        "a producer is forgotten after a thousandth of the time that it is promised",
        "limits.py",
        "PRODUCER_FORGOTTEN_US = 24 * 3_600 * 1_000_000\n",
        "PRODUCER_FORGOTTEN_US = 24 * 3_600 * 1_000\n",
    ),
    OnDisk(
        "producer as old as its first frame",
        "a producer is forgotten so long after its first append, however often it sends",
        "log/sequences.py",
        "        recent.time_us = answer.append_time_us\n",
        "",
    ),
    OnDisk(
        "append times by the clock",
        "records are stamped with what the clock shows, though it was set back",
        "log/write/group_commit.py",
        "topic.last_us = max(topic.last_us, now_us)",
        "topic.last_us = now_us",
    ),
    OnDisk(
        "append times begin anew",
        "a start does not know when the last record was appended",
        "log/recovery/topic.py",
        "ends, scan.producers, scan.last_us, sealed,",
        "ends, scan.producers, 0, sealed,",
    ),
    OnDisk(
        "append times go with their records",
        "a start knows no time of records that retention took",
        "log/write/writer_thread.py",
        "    topic.producers.newest_us = topic.last_us\n",
        "",
    ),
    OnDisk(
        "retention takes one file too many",
        "retention by bytes stops when less is left than is to be kept",
        "log/upkeep/expired_segments.py",
        "kept - segments[by_bytes].bytes >= retention_bytes",
        "kept > retention_bytes",
    ),
    OnDisk(
        "a file as old as its making",
        "retention by age takes young records of a file that was made long ago",
        "log/upkeep/trimmer.py",
        "last_us = segment.last_us() or successor.created_at_ms * 1_000",
        "last_us = segment.created_at_ms * 1_000",
    ),
    OnDisk(
        "old file left",
        "retention by age leaves the file that takes frames, all of which may be old",
        "log/upkeep/trimmer.py",
        "        if last is not None and last.runs and retention_ms is not None:\n",
        "        if False:\n",
    ),
)
