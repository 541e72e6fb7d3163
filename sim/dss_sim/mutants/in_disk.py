"""Mistakes in how the log treats its files, found by the log on a disk of sectors."""

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
        "GroupCommit._sync",
        "file.sync()",
        "pass",
    ),
    OnDisk(
        "answered after the disk failed",
        "any error of the disk is taken for a full one",
        "GroupCommit._take_back",
        """
        if refused is None:
            raise error
        """,
        """
        if refused is None:
            refused = DiskFull()
        """,
    ),
    OnDisk(
        "refused frames stay in the file",
        "what a full disk refused is overwritten later, and not cut off",
        "GroupCommit._take_back",
        "topic.file.cut_back(pending.size_before)",
        "topic.file.size = pending.size_before",
    ),
    OnDisk(
        "refused offsets stay given",
        "the offsets of frames that a full disk refused are not taken back",
        "GroupCommit._take_back",
        "topic.ends[partition] = stream.base",
        "pass",
    ),
    OnDisk(
        "directory not synced",
        "a new file has a name in the page cache only",
        "write_durably",
        "sync_directory(path.parent)",
        "",
    ),
    OnDisk(
        "named before it is durable",
        "a new file gets its name before its bytes are on the disk",
        "write_durably",
        "os.fsync(fd)",
        "",
    ),
    OnDisk(
        "row after its file",
        "a file takes frames while the commit of its row is under way",
        "Housekeeper.make_file",
        'await self._store.commit([Put(segment.row("active", HEADER_BYTES))])',
        """
        row = [Put(segment.row("active", HEADER_BYTES))]
        self.late = asyncio.ensure_future(self._store.commit(row))
        """,
    ),
    OnDisk(
        "watermark ahead of the file",
        "a watermark speaks of more than is durable",
        "Housekeeper._store_mark",
        'segment.row("active", marked.size)',
        'segment.row("active", marked.size + 512)',
    ),
    OnDisk(
        "deleted before the low watermark",
        "retention deletes files while the commit that allows it is under way",
        "Trimmer._trim",
        """
        if raised and not await self._store_starts(state, raised):
            return 0
        """,
        "self.late = asyncio.ensure_future(self._store_starts(state, raised))",
    ),
    OnDisk(
        "low watermark forgotten",
        "a start takes all streams to begin at their first record",
        "TopicRecovery.recover",
        "Stream(start, start)",
        "Stream(0, start)",
    ),
    OnDisk(
        "read up to the damage",
        "a start reads a file up to the first bad byte, as if a torn tail began there",
        "_Scanned.read",
        """
        if item.header is not None and item.start < self._watermark:
            _count_as_sent(self._topic.producers, item.header)
        """,
        """
        if item.header is not None and item.start < self._watermark:
            _count_as_sent(self._topic.producers, item.header)
        break
        """,
    ),
    OnDisk(
        "bad newest frame taken for torn",
        "the newest frame of a file is given up though its header tells which offsets it had",
        "SegmentContent.damaged",
        "bad.start < promised or bad.header is not None",
        "bad.start < promised",
    ),
    OnDisk(
        "torn frame taken as whole",
        "of the last frame of a file only the head is checked",
        "_Scan._bad_frame_here",
        "return BadBytes(position, min(position + header.frame_bytes, self._end), header)",
        r"""
        end = index + header.frame_bytes
        if end < len(self._source.bytes):
            return BadBytes(position, min(position + header.frame_bytes, self._end), header)
        said = (header.partition, header.producer_id, header.sequence, header.records)
        frame = (index, end, *said, header.base_offset, header.append_time_us)
        self._source.bytes = self._source.bytes.ljust(end, b"\0")
        return FrameSpan(position, self._source.bytes, [frame])
        """,
    ),
    OnDisk(
        "tail taken up where it lies",
        "what the page cache shows above the watermark counts as durable after a kill",
        "TopicRecovery._active",
        """
        if outcome is Outcome.TAIL:
            segments, writable = await self._outcomes.move_tail(row, content)
            self._add(*segments)
            if writable:
                self._take_up(segments[-1])
        elif is_last:
            size = content.size
            segment = Segment(
                segment_id, row.created_at_ms, content.kept, None, size, size, size
            )
            segment.frames = content.frames_kept
            segment.marks = content.marks
            self._add(segment)
            self._take_up(segment)
        else:
            self._add(await self._outcomes.seal(row, content))
        """,
        """
        if outcome is Outcome.TAIL and is_last and not content.torn_bytes:
            runs, size = judge_segment.joined(content), content.size
            created = row.created_at_ms
            segment = Segment(segment_id, created, runs, None, size, watermark, size)
            segment.frames = content.frames_kept + content.frames_above
            segment.marks = content.marks
            self._add(segment)
            self._take_up(segment)
        elif outcome is Outcome.TAIL:
            segments, writable = await self._outcomes.move_tail(row, content)
            self._add(*segments)
            if writable:
                self._take_up(segments[-1])
        elif is_last:
            size = content.size
            segment = Segment(
                segment_id, row.created_at_ms, content.kept, None, size, size, size
            )
            segment.frames = content.frames_kept
            segment.marks = content.marks
            self._add(segment)
            self._take_up(segment)
        else:
            self._add(await self._outcomes.seal(row, content))
        """,
    ),
    OnDisk(
        "bad file deleted",
        "a file of which the good part was moved on is deleted, its bad part with it",
        "Outcomes._retire",
        """
        if bad:
            path = self._paths.segment(old)
            self._report(await asyncio.to_thread(self._paths.quarantine, path), bad)
        """,
        """
        if False:
            path = self._paths.segment(old)
            self._report(await asyncio.to_thread(self._paths.quarantine, path), bad)
        """,
    ),
    OnDisk(
        "empty successor taken for a stray",
        "a file without a frame is set aside though a row names it, and its snapshot is deleted",
        "TopicRecovery.recover",
        "there = [row for row in rows if row not in never]",
        """
        there = [row for row in rows if row not in never]
        rows[:] = there
        """,
    ),
    OnDisk(
        "producers not read",
        "a start does not learn from the frames what producers had sent",
        "_Scanned._take_neighbours",
        "remember(partition, producer, sequence, FirstAnswer(own_base, records, time_us))",
        "",
    ),
    OnDisk(
        "producers go with a moved file",
        "a file of which all was moved on takes along the only snapshot of the producers",
        "Outcomes._copy_above",
        "await asyncio.to_thread(snapshots.hand_down, self._paths, old, new)",
        "pass",
    ),
    OnDisk(
        "producers forgotten too soon",
        "a producer is forgotten after a thousandth of the time that it is promised",
        "PRODUCER_FORGOTTEN_US",
        "24 * 3_600 * 1_000_000",
        "24 * 3_600 * 1_000",
    ),
    OnDisk(
        "forgotten producer taken for a new one",
        "what a producer sends again after it was forgotten is stored once more",
        "Producers._check_unknown",
        "began > self.forgotten_us",
        "True",
    ),
    OnDisk(
        "forgetting forgotten",
        "a start does not know that producers were forgotten before",
        "Producers._learn",
        "self.forgotten_us = max(self.forgotten_us, time_us)",
        "pass",
    ),
    OnDisk(
        "producer as old as its first frame",
        "a producer is forgotten so long after its first append, however often it sends",
        "Producers.stored",
        "recent.time_us = answer.append_time_us",
        "",
    ),
    OnDisk(
        "append times by the clock",
        "records are stamped with what the clock shows, though it was set back",
        "GroupCommit._placed",
        "max(topic.last_us, now_us)",
        "now_us",
    ),
    OnDisk(
        "append times begin anew",
        "a start does not know when the last record was appended",
        "TopicRecovery._finished",
        "scan.last_us",
        "0",
    ),
    OnDisk(
        "append times go with their records",
        "a start knows no time of records that retention took",
        "_snapshot",
        "topic.producers.newest_us = topic.last_us",
        "",
    ),
    OnDisk(
        "retention takes one file too many",
        "retention by bytes stops when less is left than is to be kept",
        "expired_segments.expired",
        "kept - segments[by_bytes].bytes >= retention_bytes",
        "kept > retention_bytes",
    ),
    OnDisk(
        "a file as old as its making",
        "retention by age takes young records of a file that was made long ago",
        "_ages_of",
        "segment.last_us() or successor.created_at_ms * 1_000",
        "segment.created_at_ms * 1_000",
    ),
    OnDisk(
        "old file left",
        "retention by age leaves the file that takes frames, all of which may be old",
        "Trimmer.enforce_retention",
        "last is not None and last.runs and retention_ms is not None and (not state.sealed)",
        "False",
    ),
    OnDisk(
        "published before it is durable",
        "adopted frames are published while their stamps lie in the page cache",
        "stamp_copy",
        "os.fdatasync(copy.fd)",
        "pass",
    ),
    OnDisk(
        "adopted offsets given again",
        "the writer is not told where adopted frames end",
        "WriterThread._advance",
        "topic.ends[partition] = end",
        "pass",
    ),
)
