"""The migration that brought bulk jobs: tables of jobs, their chunks and what they hold.

It has the columns as they were then; later changes are migrations of their own.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite_utils

_TABLES = {
    "holds": (
        "holder INTEGER NOT NULL",
        "storage_topic_id INTEGER NOT NULL",
        "partition INTEGER NOT NULL",
        "start INTEGER NOT NULL",
        '"end" INTEGER NOT NULL',
        "PRIMARY KEY (holder, storage_topic_id, partition)",
    ),
    "jobs": (
        "job_id INTEGER NOT NULL",
        "name TEXT NOT NULL",
        "kind TEXT NOT NULL",
        "engine TEXT NOT NULL",
        "state TEXT NOT NULL",
        "spec TEXT NOT NULL",
        "source_topic_id INTEGER NOT NULL",
        "target_topic_id INTEGER NOT NULL",
        "target_storage_topic_id INTEGER NOT NULL",
        "chunks INTEGER NOT NULL",
        "rate_bytes_s INTEGER NOT NULL",
        "created_at_ms INTEGER NOT NULL",
        "ended_at_ms INTEGER",
        "failure TEXT NOT NULL",
        "revision INTEGER NOT NULL",
        "PRIMARY KEY (job_id)",
    ),
    "job_progress": (
        "job_id INTEGER NOT NULL",
        "published INTEGER NOT NULL",
        "records INTEGER NOT NULL",
        "bytes INTEGER NOT NULL",
        "epoch INTEGER NOT NULL",
        "driver TEXT NOT NULL",
        "PRIMARY KEY (job_id)",
    ),
    "job_names": ("name TEXT NOT NULL", "job_id INTEGER NOT NULL", "PRIMARY KEY (name)"),
    "chunks": (
        "job_id INTEGER NOT NULL",
        "chunk INTEGER NOT NULL",
        "input TEXT NOT NULL",
        "records_planned INTEGER NOT NULL",
        "bytes_planned INTEGER NOT NULL",
        "epoch INTEGER NOT NULL",
        "result TEXT NOT NULL",
        "published_at_ms INTEGER",
        "PRIMARY KEY (job_id, chunk)",
    ),
}


def add_jobs(db: "sqlite_utils.Database") -> None:
    """Add the tables of bulk jobs."""
    for table, columns in _TABLES.items():
        *listed, key = columns
        listed += ["version INTEGER NOT NULL", "checksum INTEGER NOT NULL", key]
        db.execute(f'CREATE TABLE "{table}" ({", ".join(listed)}) STRICT, WITHOUT ROWID')
