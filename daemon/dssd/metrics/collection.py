"""Collects the values of the daemon's parts for one scrape.

Invariant: a collection changes nothing and starts nothing. It reads existing numbers, in short
turns on the event loop; the number of group series is bounded, however many groups there are.
"""

import asyncio
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from pathlib import Path

from dss_core.answers import Held
from dssd.clock import Clock
from dssd.events.events import Events
from dssd.events.limits import ERRORS_SHOWN_MS
from dssd.leaders.retention_losses import RetentionLosses
from dssd.log.limits import PRODUCERS_MAX, PRODUCERS_RESERVE
from dssd.log.segment_log import SegmentLog
from dssd.loop_yield import LoopTurn
from dssd.machines.fate import NO_COUNTS, Counts
from dssd.measuring.loop_delay import LoopDelay
from dssd.metrics.readings import Readings
from dssd.questions.overviews import Overview, Overviews
from dssd.questions.verdicts import Level, verdict_of
from dssd.sessions.sessions import Sessions
from dssd.store.sqlite import SqliteStore
from dssd.supervision.containment import contained
from dssd.topics.catalogue import Catalogue
from dssd.version import version

GROUPS_LABELLED_MAX = 50
"""Groups with series of their own, those with the most lag; all others are summed in one. Each
series costs the watching side memory for as long as it keeps data."""


OTHERS = "(others)"
"""The group that stands for those without series of their own; no name has parentheses."""

GROUP_STATES = ("idle", "active", "rebalancing", "stalled", "paused")


@dataclass(frozen=True, slots=True)
class MeasuredParts:
    """The parts that are looked at."""

    store: SqliteStore
    log: SegmentLog
    catalogue: Catalogue
    events: Events
    sessions: Sessions
    overviews: Overviews
    unread: RetentionLosses
    loop_delay: LoopDelay
    clock: Clock
    data_dir: Path
    started_at_ms: int
    held: Callable[[], Held]
    """What clients hold of the server."""
    errors: Mapping[str, int]
    """How often clients were told of each condition, by code."""
    certificate_ends_ms: Callable[[], int] = lambda: 0
    """Expiry of the served certificate, by the wall clock; 0: no TLS."""
    backup_at_ms: Callable[[], int] = lambda: 0
    """When the newest backup was taken, by the wall clock; 0: none is known."""


async def collected(watched: MeasuredParts) -> Readings:
    """All values, as they are now."""
    readings = Readings()
    turn = LoopTurn()
    _put_process(readings, watched)
    await turn.give_way()
    _put_log(readings, watched)
    await turn.give_way()
    await _put_sessions(readings, watched)
    await put_disk(readings, watched.data_dir)
    overviews = await watched.overviews.all()
    await put_groups(readings, overviews, watched.clock.wall_us())
    return readings


def _put_process(readings: Readings, watched: MeasuredParts) -> None:
    held = watched.held()
    errors_since_ms = watched.clock.wall_ms() - ERRORS_SHOWN_MS
    readings.put("dss_info", 1, version())
    readings.put("dss_start_time_seconds", watched.started_at_ms / 1_000)
    readings.put("dss_read_only", watched.log.is_read_only())
    readings.put_latencies("dss_loop_delay_seconds", watched.loop_delay.delays)
    readings.put("dss_connections", held.connections)
    readings.put("dss_connections_max", held.connections_max)
    readings.put("dss_calls", held.calls)
    readings.put("dss_calls_max", held.calls_max)
    readings.put("dss_backup_time_seconds", watched.backup_at_ms() / 1_000)
    ends_s = watched.certificate_ends_ms() / 1_000
    readings.put("dss_certificate_end_time_seconds", ends_s)
    for code, times in watched.errors.items():
        readings.put("dss_errors_total", times, code)
    for part, times in contained.items():
        readings.put("dss_internal_errors_total", times, part)
    readings.put("dss_events_total", watched.events.last_number)
    readings.put("dss_error_events", watched.events.errors_since(errors_since_ms))
    readings.put_latencies("dss_commit_duration_seconds", watched.store.commits)
    readings.put("dss_topics", len(watched.catalogue.topics()))
    readings.put("dss_unread_records_gone_total", watched.unread.records)


def _put_log(readings: Readings, watched: MeasuredParts) -> None:
    measures = watched.log.measures
    readings.put_latencies("dss_append_duration_seconds", measures.appends)
    readings.put_latencies("dss_sync_duration_seconds", measures.syncs)
    readings.put("dss_stored_frames_total", measures.stored_frames)
    readings.put("dss_stored_records_total", measures.stored_records)
    readings.put("dss_stored_bytes_total", measures.stored_bytes)
    readings.put("dss_append_queue_bytes", measures.queued_bytes)
    readings.put("dss_log_read_bytes_total", watched.log.bytes_read)
    readings.put("dss_log_segments", measures.segments)
    readings.put("dss_log_bytes", measures.kept_bytes)
    readings.put("dss_producers", measures.producers)
    readings.put("dss_producers_max", PRODUCERS_MAX - PRODUCERS_RESERVE)


async def _put_sessions(readings: Readings, watched: MeasuredParts) -> None:
    counts = watched.sessions.counts()
    readings.put("dss_sessions", counts.connected, "connected")
    readings.put("dss_sessions", counts.detached, "waiting")
    readings.put("dss_subscriptions", counts.subscriptions)
    deliveries = watched.sessions.deliveries
    readings.put("dss_delivered_messages_total", deliveries.messages)
    readings.put("dss_delivered_records_total", deliveries.records)
    readings.put("dss_redelivered_records_total", deliveries.redelivered)
    readings.put("dss_delivered_bytes_total", deliveries.bytes)
    failures = deliveries.failures
    readings.put("dss_failed_records_total", failures.retried, "retry")
    readings.put("dss_failed_records_total", failures.dead, "dead")
    readings.put_latencies("dss_delivery_age_seconds", deliveries.ages)
    readings.put("dss_delivery_buffer_bytes", watched.sessions.held_bytes)
    credit = await watched.sessions.credits()
    readings.put("dss_credit_records", credit.records)
    readings.put("dss_credit_bytes", credit.bytes)
    readings.put("dss_out_records", credit.out_records)
    readings.put("dss_out_bytes", credit.out_bytes)
    readings.put("dss_sessions_without_credit", credit.exhausted)


async def put_disk(readings: Readings, data_dir: Path) -> None:
    """How full the file system is."""
    try:
        # In a thread: a disk that hangs must not hold the loop.
        usage = await asyncio.to_thread(shutil.disk_usage, data_dir)
    except OSError:
        return  # the disk is gone, and the next write reports that: these two metrics have no value
    readings.put("dss_disk_free_bytes", usage.free)
    readings.put("dss_disk_size_bytes", usage.total)


async def put_groups(readings: Readings, overviews: Sequence[Overview], wall_us: int) -> None:
    """Put the metrics of groups: sums over all, and series for those with the most lag."""
    turn = LoopTurn()
    states = Counter(dict.fromkeys(GROUP_STATES, 0))
    done = list(NO_COUNTS)
    for overview in overviews:
        await turn.give_way()
        states[overview.state] += 1
        done = [so_far + more for so_far, more in zip(done, overview.fates, strict=True)]
    for state, count in states.items():
        readings.put("dss_groups", count, state)
    for fate, records in zip(Counts._fields, done, strict=True):
        readings.put("dss_groups_done_records", records, fate)
    await turn.give_way()
    labelled = nlargest(GROUPS_LABELLED_MAX, overviews, key=_not_done)
    for overview in labelled:
        await turn.give_way()
        _put_group(readings, overview.group.name, overview.group.filter, [overview], wall_us)
    shown = {overview.group.group_id for overview in labelled}
    others = [each for each in overviews if each.group.group_id not in shown]
    if others:
        _put_group(readings, OTHERS, "", others, wall_us)


def _not_done(group: Overview) -> int:
    return group.lag + group.retrying + group.dead


def _put_group(
    readings: Readings, name: str, wanted: str, groups: Sequence[Overview], wall_us: int
) -> None:
    labels = name, wanted
    oldest_us = min(
        (each.oldest_unacked_us for each in groups if each.oldest_unacked_us is not None),
        default=wall_us,
    )
    readings.put("dss_group_lag_records", sum(each.lag for each in groups), *labels)
    readings.put("dss_group_lag_seconds", max(0, wall_us - oldest_us) / 1_000_000, *labels)
    readings.put("dss_group_retrying", sum(each.retrying for each in groups), *labels)
    readings.put("dss_group_dead", sum(each.dead for each in groups), *labels)
    readings.put("dss_group_queues_full", sum(each.is_full for each in groups), *labels)
    readings.put("dss_group_arrival_rate", sum(each.arrivals.minute for each in groups), *labels)
    readings.put("dss_group_ack_rate", sum(each.acks.minute for each in groups), *labels)
    readings.put("dss_group_members", sum(each.borrowers for each in groups), *labels)
    for state in ("paused", "stalled"):
        readings.put(f"dss_group_{state}", sum(each.state == state for each in groups), *labels)
    problems = sum(verdict_of(each).level is Level.PROBLEM for each in groups)
    readings.put("dss_group_problem", problems, *labels)
