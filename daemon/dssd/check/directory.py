"""Checks a whole data directory: the store, the log, and whether they agree.

Rows are matched with files as at a start (`log/recovery/open_log.py`), but nothing is repaired.
Invariant: the caller holds the lock of the directory while this module reads.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from dssd.check.findings import Report
from dssd.check.segments import TopicCheck, size_of
from dssd.check.store import NotBegun, StoreRows, opened_rows
from dssd.data_directory import DataDirectory
from dssd.leaders.progress_columns import reached_by
from dssd.log.recovery.older_store import files_unknown_at
from dssd.log.resume.clean_marker import CLEAN_MARKER
from dssd.log.segment.file import (
    CACHE_SUFFIXES,
    QUARANTINE,
    SEGMENT_SUFFIX,
    TEMPORARY_SUFFIX,
    SegmentId,
    SegmentPaths,
    parse_name,
)
from dssd.log.segment.rows import row_id
from dssd.store.rows import (
    CeilingRow,
    GroupRow,
    ProgressRow,
    SegmentRow,
    StorageTopicRow,
    TopicNameRow,
    TopicRow,
)

Ends = dict[int, tuple[str, list[int]]]
"""By storage topic: its name as printed (TOPIC/ORDINAL), and the end offset of each stream."""


def checked(
    directory: DataDirectory,
    *,
    deep: bool,
    begun: Callable[[int], None],
    advanced: Callable[[int], None],
) -> Report:
    """Check everything. ``begun`` is told how many bytes of segments there are, ``advanced``
    how many of them were checked since its last call.

    Raises:
        DataDirectoryNewer: a newer version wrote the store.
        OSError: a file cannot be read.
    """
    report = Report(directory.path, deep)
    paths = SegmentPaths(directory.log_path)
    begun(sum(size_of(path) for path in paths.directory.glob(f"*{SEGMENT_SUFFIX}")))
    _list_quarantined(paths, report)
    try:
        with opened_rows(directory.store_path, report) as rows:
            if rows is not None:
                ends = _check_log(rows, paths, report, advanced)
                _check_progress(rows, ends, report)
    except NotBegun:
        if any(paths.directory.glob(f"*{SEGMENT_SUFFIX}")):
            report.damage(directory.store_path, "it is missing, and the log has records")
        else:
            report.note(directory.store_path, "no daemon has created it yet")
    except (sqlite3.Error, UnicodeDecodeError) as error:
        report.damage(directory.store_path, str(error))
    return report


def _list_quarantined(paths: SegmentPaths, report: Report) -> None:
    folder = paths.directory / QUARANTINE
    if folder.is_dir():
        for path in sorted(folder.iterdir()):
            report.note(path, f"set aside by an earlier start, {size_of(path)} bytes")


def _check_log(
    rows: StoreRows, paths: SegmentPaths, report: Report, advanced: Callable[[int], None]
) -> Ends:
    known = rows.all(TopicRow)
    topics = {row.topic_id: row.name for row in known}
    report.topics = sum(not row.level for row in known)
    _check_names(rows, topics, report)
    segments: dict[int, list[SegmentRow]] = defaultdict(list)
    for row in rows.all(SegmentRow):
        segments[row.storage_topic_id].append(row)
    named = {row_id(row) for own in segments.values() for row in own}
    unknown = set(files_unknown_at(paths, rows.last_id()))
    clean = (paths.directory / CLEAN_MARKER).exists()
    ceilings: dict[int, dict[int, int]] = defaultdict(dict)
    for ceiling in rows.all(CeilingRow):
        ceilings[ceiling.storage_topic_id][ceiling.partition] = ceiling.ceiling
    ends: Ends = {}
    for topic in rows.all(StorageTopicRow):
        name = topics.get(topic.topic_id, f"topic {topic.topic_id}")
        if topic.topic_id not in topics:
            report.damage(f"{name}/{topic.ordinal}", "its topic has no row")
        check = TopicCheck(paths, topic, name, report, advanced, ceilings[topic.storage_topic_id])
        own = segments.pop(topic.storage_topic_id, [])
        written = f"{name}/{topic.ordinal}"
        ends[topic.storage_topic_id] = (written, check.check(own, clean=clean))
    for left in segments.values():
        for row in left:
            path = paths.segment(row_id(row))
            report.note(path, "its topic was removed: the next start deletes it")
    _check_strays(paths, named, unknown, report)
    return ends


def _check_names(rows: StoreRows, topics: dict[int, str], report: Report) -> None:
    named = {row.topic_id: row.name for row in rows.all(TopicNameRow)}
    for topic_id, name in topics.items():
        if named.get(topic_id) != name:
            report.damage(name, "no row reserves its name")


def _check_strays(
    paths: SegmentPaths, named: set[SegmentId], unknown: set[Path], report: Report
) -> None:
    if not paths.directory.is_dir():
        report.damage(paths.directory, "it is missing")
        return
    for path in sorted(paths.directory.iterdir()):
        if path.name in (QUARANTINE, CLEAN_MARKER):
            continue
        segment = parse_name(path)
        if path in unknown:
            report.damage(path, "the store is older than it, and no daemon starts beside it")
        elif path.suffix == TEMPORARY_SUFFIX:
            report.note(path, "it never got its name: the next start deletes it")
        elif segment in named:
            continue
        elif path.suffix in CACHE_SUFFIXES:
            report.note(path, "it belongs to no segment: the next start deletes it")
        elif segment is not None and paths.adopting(segment).exists():
            report.note(path, "it was not published: the next start deletes it")
        else:
            report.damage(path, "no row names it: the next start sets it aside")


def _check_progress(rows: StoreRows, ends: Ends, report: Report) -> None:
    groups = {row.group_id: row.full_name for row in rows.all(GroupRow)}
    for row in rows.all(ProgressRow):
        group = groups.get(row.group_id)
        written, own = ends.get(row.storage_topic_id, ("", []))
        if group is None:
            report.note(f"group {row.group_id}", "it was removed, and its progress is still there")
        elif row.partition >= len(own):
            report.note(group, f"it has progress in storage topic {row.storage_topic_id}, removed")
        elif (reached := reached_by(row)) > (end := own[row.partition]):
            stream = f"{written}/{row.partition}"
            report.damage(group, f"it has consumed {stream} up to {reached}; the log ends at {end}")
