"""Compares segment files with their rows, their indexes and each other, by storage topic.

A sealed segment is judged by its index, unless every byte is to be read; an active one is read
whole, as at a start. What a start repairs by itself (a torn tail, a missing index) is a note, not
damage. This module reuses the scan of a start and must not repeat its rules.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from dss_core.limits import RESTORE_OFFSETS_RAISED
from dssd.check.findings import Report
from dssd.log.recovery import judge_segment
from dssd.log.recovery.judge_segment import Outcome
from dssd.log.recovery.segment_content import SegmentContent, TopicScan, scan_segment
from dssd.log.segment.file import (
    HEADER_BYTES,
    BadSegmentHeader,
    SegmentId,
    SegmentPaths,
    check_header,
)
from dssd.log.segment.index_file import BadIndex, Summary
from dssd.log.segment.rows import parse_ends, parse_starts, row_id
from dssd.log.segment.run_index import Runs
from dssd.log.sequences import Producers
from dssd.log.settings import LogSettings
from dssd.store.rows import SegmentRow, StorageTopicRow


class TopicCheck:
    """The check of one storage topic."""

    def __init__(
        self,
        paths: SegmentPaths,
        topic: StorageTopicRow,
        name: str,
        report: Report,
        advanced: Callable[[int], None],
        ceilings: Mapping[int, int],
    ) -> None:
        self._paths = paths
        self._topic = topic
        self._name = name
        self._report = report
        self._advanced = advanced
        self._ceilings = ceilings
        self._starts = parse_starts(topic)
        self._run_bytes_max = LogSettings().run_bytes_max
        number = topic.storage_topic_id
        self._scan = TopicScan(number, [0] * topic.partitions, Producers(number))
        self._ends = list(self._starts)

    def check(self, rows: Sequence[SegmentRow], *, clean: bool) -> list[int]:
        """Go through the segments, given in order; returns the end of each stream."""
        for row in rows:
            self._report.segments += 1
            if row.state == "active":
                self._active(row, clean=clean, is_last=row is rows[-1])
            else:
                self._sealed(row)
            self._advanced(size_of(self._paths.segment(row_id(row))))
        ends = parse_ends(self._topic)
        for partition in self._ceilings:
            self._left_out(
                partition, self._ceilings[partition] if ends is None else ends[partition]
            )
        if ends is not None:
            self._compare_ends(ends)
        return self._ends

    def _left_out(self, partition: int, offset: int) -> None:
        """Note the offsets that a stream with a ceiling skips up to ``offset``."""
        start = self._ends[partition]
        if offset > start:
            what = f"the offsets {start}..{offset} are left out: "
            if offset - start >= RESTORE_OFFSETS_RAISED:
                what += "a backup was restored, and nobody knows what came behind it"
            else:
                what += "records of durability os that had them were lost before they were synced"
            self._report.note(self._stream(partition), what)
            self._ends[partition] = offset

    def _compare_ends(self, promised: Sequence[int]) -> None:
        for partition, (end, found) in enumerate(zip(promised, self._ends, strict=True)):
            if found != end:
                what = f"it was sealed at {end}, but ends at {found}"
                self._report.damage(self._stream(partition), what)

    def _sealed(self, row: SegmentRow) -> None:
        segment = row_id(row)
        path = self._paths.segment(segment)
        size = size_of(path)
        try:
            summary = judge_segment.load_summary(self._paths, segment)
            runs = judge_segment.load_runs(self._paths, segment, summary)
        except BadIndex as error:
            self._report.note(self._paths.index(segment), f"{error}: the next start makes it anew")
            # Frames above the watermark have moved to the next file.
            self._by_bytes(row, row.watermark_bytes, stop_at=row.watermark_bytes)
            return
        if not path.exists():
            if not self._is_given_up(summary):
                self._report.damage(path, "the file is missing")
        elif size < summary.segment_bytes:
            what = f"it has {size} bytes of the {summary.segment_bytes} that its index knows"
            self._report.damage(path, what)
        self._by_index(segment, summary, runs)

    def _by_index(self, segment: SegmentId, summary: Summary, runs: Runs) -> None:
        path = self._paths.segment(segment)
        if self._report.deep and path.exists():
            content = self._scanned(segment, summary.segment_bytes, summary.segment_bytes)
            assert content is not None
            self._report_bytes(path, content, summary.segment_bytes)
            if content.frames_kept != summary.frames:
                what = f"it has {content.frames_kept} whole frames, its index {summary.frames}"
                self._report.damage(path, what)
        elif path.exists():
            self._check_header(path, segment)
        for partition, entry in summary.streams.items():
            self._follow(partition, runs, entry.extent.end)
            self._scan.ends[partition] = max(self._scan.ends[partition], entry.extent.end)

    def _active(self, row: SegmentRow, *, clean: bool, is_last: bool) -> None:
        segment = row_id(row)
        path = self._paths.segment(segment)
        watermark = row.watermark_bytes
        if not is_last:
            watermark = max(watermark, size_of(path))
        self._by_bytes(row, watermark)
        above = size_of(path) - watermark
        if above > 0 and not clean:
            self._report.note(path, f"{above} bytes were written last: the next start copies them")

    def _by_bytes(self, row: SegmentRow, watermark: int, stop_at: int | None = None) -> None:
        """Judge a file by all its bytes, because it has no index to trust."""
        segment = row_id(row)
        path = self._paths.segment(segment)
        content = self._scanned(segment, watermark, stop_at)
        outcome = judge_segment.judge(content, watermark)
        if content is None:
            if watermark > HEADER_BYTES:
                self._report.damage(path, "the file is missing")
            else:
                self._report.note(path, "it never existed: the next start forgets its row")
            return
        if outcome is Outcome.DAMAGED:
            self._report_bytes(path, content, watermark)
        elif outcome is Outcome.NEVER_BEGUN:
            self._report.note(path, "it never took a frame: the next start sets it aside")
        elif content.torn_bytes:
            self._report.note(path, f"a torn tail of {content.torn_bytes} bytes")
        runs = judge_segment.joined(content)
        for partition, own in runs.items():
            assert own.extent is not None
            self._follow(partition, runs, own.extent.end)

    def _scanned(
        self, segment: SegmentId, watermark: int, stop_at: int | None = None
    ) -> SegmentContent | None:
        content = scan_segment(
            self._paths, segment, watermark, self._scan, self._run_bytes_max, stop_at=stop_at
        )
        if content is not None:
            self._report.bytes_read += content.size
        return content

    def _report_bytes(self, path: Path, content: SegmentContent, watermark: int) -> None:
        if content.header_reason:
            self._report.damage(path, f"its header: {content.header_reason}")
        for bad in content.damaged(watermark):
            what = f"bytes {bad.start}..{bad.end} are no whole frame"
            if self._ceilings and bad.start >= watermark:
                self._report.note(path, f"{what}: they were not synced when the power went")
            else:
                self._report.damage(path, what)
        if content.size < watermark:
            what = f"it has {content.size} bytes; {watermark} were durable"
            self._report.damage(path, what)

    def _check_header(self, path: Path, segment: SegmentId) -> None:
        try:
            with path.open("rb") as file:
                check_header(file.read(HEADER_BYTES), segment)
        except BadSegmentHeader as error:
            self._report.damage(path, f"its header: {error}")

    def _follow(self, partition: int, runs: Runs, end: int) -> None:
        """Check that the offsets of a stream continue without a gap."""
        if partition >= len(self._ends):
            self._report.damage(self._stream(partition), "the topic has no such partition")
            return
        extent = runs[partition].extent
        if partition in self._ceilings and extent is not None:
            self._left_out(partition, extent.start)
        for run in runs[partition].slice(0, len(runs[partition])):
            self._gap(partition, run.base)
            self._report.records += run.end - run.base
            self._ends[partition] = max(self._ends[partition], run.end)
        self._gap(partition, end)
        self._ends[partition] = max(self._ends[partition], end)

    def _gap(self, partition: int, offset: int) -> None:
        start = self._ends[partition]
        if offset <= start:
            return
        if partition in self._ceilings:
            what = f"the records {start}..{offset} were lost, before they were synced or by damage"
            self._report.note(self._stream(partition), what)
        else:
            what = f"the records {start}..{offset} cannot be read"
            self._report.damage(self._stream(partition), what)

    def _is_given_up(self, summary: Summary) -> bool:
        """Whether all that a segment held lies below the low watermarks."""
        return all(
            entry.extent.end <= self._starts[partition]
            for partition, entry in summary.streams.items()
            if partition < len(self._starts)
        )

    def _stream(self, partition: int) -> str:
        return f"{self._name}/{self._topic.ordinal}/{partition}"


def size_of(path: Path) -> int:
    """Bytes of a file; 0 where there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
