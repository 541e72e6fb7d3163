"""Every metric that the daemon shows: its name, what it is, its labels, in one table.

Invariant: a name is here once, keeps its meaning, and is shown at each scrape, but for those whose
labels have no value yet. Names have their unit, as Prometheus wants it. Rules, dashboards and
`docs/monitoring.md` name no others of the daemon.
"""

from enum import Enum
from typing import NamedTuple

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)

Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily


class SeriesKind(Enum):
    """How its value goes."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class MetricSpec(NamedTuple):
    """One line of the table."""

    name: str
    kind: SeriesKind
    help: str
    labels: tuple[str, ...] = ()

    def family(self) -> Family:
        """Empty, to be filled."""
        match self.kind:
            case SeriesKind.COUNTER:
                return CounterMetricFamily(self.name, self.help, labels=self.labels)
            case SeriesKind.GAUGE:
                return GaugeMetricFamily(self.name, self.help, labels=self.labels)
            case SeriesKind.HISTOGRAM:
                return HistogramMetricFamily(self.name, self.help, labels=self.labels)


_C, _G, _H = SeriesKind.COUNTER, SeriesKind.GAUGE, SeriesKind.HISTOGRAM
_GROUP = ("group", "filter")

# fmt: off
TABLE = (
    MetricSpec("dss_info", _G, "Always 1; its label tells the version.", ("version",)),
    MetricSpec("dss_start_time_seconds", _G, "When the daemon started, in seconds since 1970."),
    MetricSpec("dss_certificate_end_time_seconds", _G,
        "When the certificate of TLS ends that is served, in seconds since 1970; 0 without TLS."),
    MetricSpec("dss_backup_time_seconds", _G,
        "When the newest backup was taken that is whole, in seconds since 1970; 0: none is known."),
    MetricSpec("dss_read_only", _G, "1 while the disk is full and publishing is refused."),
    MetricSpec("dss_loop_delay_seconds", _H,
        "How late the event loop was, looked at ten times a second."),
    MetricSpec("dss_connections", _G, "Connections of clients."),
    MetricSpec("dss_connections_max", _G, "How many connections clients may have."),
    MetricSpec("dss_calls", _G, "Calls of clients that are open."),
    MetricSpec("dss_calls_max", _G, "How many calls clients may have open."),
    MetricSpec("dss_errors_total", _C,
        "Errors told to clients: calls that failed, and items that were refused.", ("code",)),
    MetricSpec("dss_internal_errors_total", _C,
        "Mistakes of the daemon that ended a run, a call or a service; it went on.", ("part",)),
    MetricSpec("dss_events_total", _C, "The number of the newest event (dssctl events)."),
    MetricSpec("dss_error_events", _G, "Events of severity error that began in the last day."),

    MetricSpec("dss_append_duration_seconds", _H,
        "From a call of producers reaching the log to its answer, the sync included."),
    MetricSpec("dss_sync_duration_seconds", _H, "Syncs of log files that frames waited for."),
    MetricSpec("dss_commit_duration_seconds", _H,
        "Transactions of the store, the sync included."),
    MetricSpec("dss_stored_frames_total", _C, "Frames stored in the log."),
    MetricSpec("dss_stored_records_total", _C, "Records stored in the log."),
    MetricSpec("dss_stored_bytes_total", _C, "Bytes stored in the log."),
    MetricSpec("dss_append_queue_bytes", _G, "Bytes of frames that wait for their answer."),
    MetricSpec("dss_log_read_bytes_total", _C, "Bytes that reads took from files of the log."),
    MetricSpec("dss_log_segments", _G, "Segment files that are kept."),
    MetricSpec("dss_log_bytes", _G, "Bytes of the segment files that are kept."),
    MetricSpec("dss_disk_free_bytes", _G, "Free bytes where the data directory lies."),
    MetricSpec("dss_disk_size_bytes", _G, "Size of the file system of the data directory."),
    MetricSpec("dss_producers", _G, "Producers that are remembered, one a partition."),
    MetricSpec("dss_producers_max", _G, "From how many on most new producers are refused."),
    MetricSpec("dss_topics", _G, "Topics."),
    MetricSpec("dss_unread_records_gone_total", _C,
        "Records that retention took before a group had acknowledged them."),

    MetricSpec("dss_sessions", _G,
        "Sessions of clients, by whether they are connected or waiting.", ("state",)),
    MetricSpec("dss_subscriptions", _G, "Subscriptions of connected sessions."),
    MetricSpec("dss_delivered_messages_total", _C, "Messages with records that went to clients."),
    MetricSpec("dss_delivered_records_total", _C, "Records that went to clients."),
    MetricSpec("dss_redelivered_records_total", _C, "Of these, records that had come before."),
    MetricSpec("dss_delivered_bytes_total", _C, "Bytes of frames that went to clients."),
    MetricSpec("dss_failed_records_total", _C,
        "Failures of records in groups with queues, by whether the record comes again (retry) or is"
        " a dead letter (dead).", ("outcome",)),
    MetricSpec("dss_delivery_age_seconds", _H,
        "How old records were when they first went to a client: the latency of those who keep up,"
        " the lag of those who do not."),
    MetricSpec("dss_delivery_buffer_bytes", _G, "Bytes that lie in the daemon for clients."),
    MetricSpec("dss_credit_records", _G, "Records that all connected clients may have out."),
    MetricSpec("dss_credit_bytes", _G, "Bytes that all connected clients may have out."),
    MetricSpec("dss_out_records", _G, "Records that clients have and have not settled."),
    MetricSpec("dss_out_bytes", _G, "Bytes that clients have and have not settled."),
    MetricSpec("dss_sessions_without_credit", _G,
        "Sessions that get nothing more until they settle."),

    MetricSpec("dss_groups", _G, "Groups, private ones left out, by their state.", ("state",)),
    MetricSpec("dss_groups_done_records", _G,
        "What all groups are done with, by what became of it; falls when a group is removed.",
        ("fate",)),
    MetricSpec("dss_group_lag_records", _G,
        "Records that a group has not acknowledged. Groups with less to do than the labelled ones"
        " are summed as group (others).", _GROUP),
    MetricSpec("dss_group_lag_seconds", _G,
        "Age of the oldest record that a group has not acknowledged; the oldest of (others).",
        _GROUP),
    MetricSpec("dss_group_retrying", _G,
        "Records in the retry queues of a group: they failed and come again.", _GROUP),
    MetricSpec("dss_group_dead", _G, "Records among the dead letters of a group.", _GROUP),
    MetricSpec("dss_group_queues_full", _G,
        "1 while the queues of a stream of a group have no room; of (others), how many groups.",
        _GROUP),
    MetricSpec("dss_group_arrival_rate", _G,
        "Records a second in the topics of a group, over a minute.", _GROUP),
    MetricSpec("dss_group_ack_rate", _G,
        "Records a second that a group is done with, over a minute.", _GROUP),
    MetricSpec("dss_group_members", _G, "Members of a group.", _GROUP),
    MetricSpec("dss_group_paused", _G,
        "1 while an operator has a group pause; of (others), how many do so.", _GROUP),
    MetricSpec("dss_group_stalled", _G,
        "1 while a stream of a group cannot go on; of (others), how many do so.", _GROUP),
    MetricSpec("dss_group_problem", _G,
        "1 while a group is a problem by the daemon's verdict; of (others), how many are.", _GROUP),
)
# fmt: on

BY_NAME = {spec.name: spec for spec in TABLE}
assert len(BY_NAME) == len(TABLE), "a name is in the table once"
