"""Columns that later formats added to tables of earlier ones, as SQL has them.

Invariant: what a released format added never changes.
"""

from collections.abc import Mapping, Sequence

AddedColumns = Mapping[str, Sequence[str]]
"""By table."""

OPERATED_COLUMNS: AddedColumns = {
    "topics": ("revision INTEGER NOT NULL DEFAULT 0",),
    "groups": (
        "revision INTEGER NOT NULL DEFAULT 0",
        "paused INTEGER NOT NULL DEFAULT 0",
        "paused_until_ms INTEGER",
    ),
    "grants": ("pinned_session_id BLOB",),
    "progress": (
        "moved_count INTEGER NOT NULL DEFAULT 0",
        "marked_below INTEGER NOT NULL DEFAULT 0",
    ),
}

QUEUE_COLUMNS: AddedColumns = {
    "topics": (
        "level INTEGER NOT NULL DEFAULT 0",
        "group_id INTEGER NOT NULL DEFAULT 0",
        "main_topic_id INTEGER NOT NULL DEFAULT 0",
    ),
    "groups": (
        "max_deliver INTEGER NOT NULL DEFAULT 0",
        "backoff_ms TEXT NOT NULL DEFAULT ''",
        "queue_records INTEGER NOT NULL DEFAULT 0",
        "queue_bytes INTEGER NOT NULL DEFAULT 0",
        "ordered INTEGER NOT NULL DEFAULT 0",
        "shards INTEGER NOT NULL DEFAULT 0",
        "allocation TEXT NOT NULL DEFAULT 'sticky'",
        "on_dead_letter TEXT NOT NULL DEFAULT 'skip'",
        "keyless TEXT NOT NULL DEFAULT 'deliver'",
    ),
    "pending_moves": (
        "redriven BLOB NOT NULL DEFAULT x''",
        "discarded BLOB NOT NULL DEFAULT x''",
    ),
    "progress": (
        "retried_count INTEGER NOT NULL DEFAULT 0",
        "applied_end INTEGER NOT NULL DEFAULT 0",
        "redrive INTEGER NOT NULL DEFAULT 0",
        "redriving BLOB NOT NULL DEFAULT x''",
    ),
}

ERRAND_COLUMNS: AddedColumns = {
    "progress": (
        "redrive_whole_keys INTEGER NOT NULL DEFAULT 0",
        "errand INTEGER NOT NULL DEFAULT 0",
        "errand_kind TEXT NOT NULL DEFAULT ''",
        "errand_ranges BLOB NOT NULL DEFAULT x''",
        "hurried INTEGER NOT NULL DEFAULT 0",
        "hurried_ranges BLOB NOT NULL DEFAULT x''",
    ),
    "pending_moves": (
        "redrive_whole_keys INTEGER NOT NULL DEFAULT 0",
        "errand_kind TEXT NOT NULL DEFAULT ''",
        "errand_ranges BLOB NOT NULL DEFAULT x''",
    ),
}

OWNER_COLUMNS: AddedColumns = {
    "schedules": ("principal TEXT NOT NULL DEFAULT ''",),
    "jobs": ("principal TEXT NOT NULL DEFAULT ''",),
}
