CREATE TABLE "incarnations" (
   "number" INTEGER PRIMARY KEY NOT NULL,
   "incarnation" BLOB NOT NULL,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE "topics" (
   "topic_id" INTEGER PRIMARY KEY NOT NULL,
   "name" TEXT NOT NULL,
   "patterns" TEXT NOT NULL,
   "router" TEXT NOT NULL,
   "durability" TEXT NOT NULL,
   "produce_ordinal" INTEGER NOT NULL,
   "topic_epoch" INTEGER NOT NULL,
   "retention_ms" INTEGER,
   "retention_bytes" INTEGER,
   "created_at_ms" INTEGER NOT NULL,
   "revision" INTEGER NOT NULL,
   "level" INTEGER NOT NULL,
   "group_id" INTEGER NOT NULL,
   "main_topic_id" INTEGER NOT NULL,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE "topic_names" (
   "name" TEXT PRIMARY KEY NOT NULL,
   "topic_id" INTEGER NOT NULL,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE "storage_topics" (
   "topic_id" INTEGER NOT NULL,
   "ordinal" INTEGER NOT NULL,
   "storage_topic_id" INTEGER NOT NULL,
   "partitions" INTEGER NOT NULL,
   "factor" INTEGER NOT NULL,
   "ends" TEXT,
   "starts" TEXT NOT NULL,
   "begins_us" INTEGER NOT NULL,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL,
   PRIMARY KEY ("topic_id", "ordinal")
) STRICT, WITHOUT ROWID;

CREATE TABLE "segments" (
   "storage_topic_id" INTEGER NOT NULL,
   "segment_id" INTEGER NOT NULL,
   "state" TEXT NOT NULL,
   "watermark_bytes" INTEGER NOT NULL,
   "created_at_ms" INTEGER NOT NULL,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL,
   PRIMARY KEY ("storage_topic_id", "segment_id")
) STRICT, WITHOUT ROWID;

CREATE TABLE "ceilings" (
   "storage_topic_id" INTEGER NOT NULL,
   "partition" INTEGER NOT NULL,
   "ceiling" INTEGER NOT NULL,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL,
   PRIMARY KEY ("storage_topic_id", "partition")
) STRICT, WITHOUT ROWID;

CREATE TABLE "holds" (
   "holder" INTEGER NOT NULL,
   "storage_topic_id" INTEGER NOT NULL,
   "partition" INTEGER NOT NULL,
   "start" INTEGER NOT NULL,
   "end" INTEGER NOT NULL,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL,
   PRIMARY KEY ("holder", "storage_topic_id", "partition")
) STRICT, WITHOUT ROWID;

CREATE TABLE "jobs" (
   "job_id" INTEGER PRIMARY KEY NOT NULL,
   "name" TEXT NOT NULL,
   "kind" TEXT NOT NULL,
   "engine" TEXT NOT NULL,
   "state" TEXT NOT NULL,
   "spec" TEXT NOT NULL,
   "source_topic_id" INTEGER NOT NULL,
   "target_topic_id" INTEGER NOT NULL,
   "target_storage_topic_id" INTEGER NOT NULL,
   "chunks" INTEGER NOT NULL,
   "rate_bytes_s" INTEGER NOT NULL,
   "created_at_ms" INTEGER NOT NULL,
   "ended_at_ms" INTEGER,
   "failure" TEXT NOT NULL,
   "revision" INTEGER NOT NULL,
   "principal" TEXT NOT NULL,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE "job_progress" (
   "job_id" INTEGER PRIMARY KEY NOT NULL,
   "published" INTEGER NOT NULL,
   "records" INTEGER NOT NULL,
   "bytes" INTEGER NOT NULL,
   "epoch" INTEGER NOT NULL,
   "driver" TEXT NOT NULL,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE "job_names" (
   "name" TEXT PRIMARY KEY NOT NULL,
   "job_id" INTEGER NOT NULL,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE "chunks" (
   "job_id" INTEGER NOT NULL,
   "chunk" INTEGER NOT NULL,
   "input" TEXT NOT NULL,
   "records_planned" INTEGER NOT NULL,
   "bytes_planned" INTEGER NOT NULL,
   "epoch" INTEGER NOT NULL,
   "result" TEXT NOT NULL,
   "published_at_ms" INTEGER,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL,
   PRIMARY KEY ("job_id", "chunk")
) STRICT, WITHOUT ROWID;

CREATE TABLE "groups" (
   "group_id" INTEGER PRIMARY KEY NOT NULL,
   "name" TEXT NOT NULL,
   "filter" TEXT NOT NULL,
   "kind" TEXT NOT NULL,
   "start" TEXT NOT NULL,
   "session_id" BLOB,
   "ack_wait_ms" INTEGER NOT NULL,
   "created_at_ms" INTEGER NOT NULL,
   "cursor_generation" INTEGER NOT NULL,
   "protocol" TEXT NOT NULL,
   "on_damage" TEXT NOT NULL,
   "revision" INTEGER NOT NULL,
   "paused" INTEGER NOT NULL,
   "paused_until_ms" INTEGER,
   "max_deliver" INTEGER NOT NULL,
   "backoff_ms" TEXT NOT NULL,
   "queue_records" INTEGER NOT NULL,
   "queue_bytes" INTEGER NOT NULL,
   "ordered" INTEGER NOT NULL,
   "shards" INTEGER NOT NULL,
   "allocation" TEXT NOT NULL,
   "on_dead_letter" TEXT NOT NULL,
   "keyless" TEXT NOT NULL,
   "metadata" TEXT NOT NULL,
   "unused_ms" INTEGER NOT NULL,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE "group_names" (
   "name" TEXT NOT NULL,
   "filter" TEXT NOT NULL,
   "group_id" INTEGER NOT NULL,
   "destroyed_at_ms" INTEGER,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL,
   PRIMARY KEY ("name", "filter")
) STRICT, WITHOUT ROWID;

CREATE TABLE "leaders" (
   "group_id" INTEGER PRIMARY KEY NOT NULL,
   "boot_id" BLOB NOT NULL,
   "leader_epoch" INTEGER NOT NULL,
   "beat" INTEGER NOT NULL,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE "grants" (
   "group_id" INTEGER NOT NULL,
   "storage_topic_id" INTEGER NOT NULL,
   "partition" INTEGER NOT NULL,
   "grant_epoch" INTEGER NOT NULL,
   "session_id" BLOB,
   "borrower_id" BLOB,
   "cursor_generation" INTEGER NOT NULL,
   "pinned_session_id" BLOB,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL,
   PRIMARY KEY ("group_id", "storage_topic_id", "partition")
) STRICT, WITHOUT ROWID;

CREATE TABLE "stream_sets" (
   "group_id" INTEGER NOT NULL,
   "session_id" BLOB NOT NULL,
   "set_version" INTEGER NOT NULL,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL,
   PRIMARY KEY ("group_id", "session_id")
) STRICT, WITHOUT ROWID;

CREATE TABLE "progress" (
   "group_id" INTEGER NOT NULL,
   "storage_topic_id" INTEGER NOT NULL,
   "partition" INTEGER NOT NULL,
   "floor" INTEGER NOT NULL,
   "ranges" BLOB NOT NULL,
   "frontier" INTEGER NOT NULL,
   "attempts" BLOB NOT NULL,
   "finished" INTEGER NOT NULL,
   "cursor_generation" INTEGER NOT NULL,
   "failures" BLOB NOT NULL,
   "doubts" BLOB NOT NULL,
   "rests" BLOB NOT NULL,
   "damaged" BLOB NOT NULL,
   "acked_count" INTEGER NOT NULL,
   "filtered_count" INTEGER NOT NULL,
   "lost_count" INTEGER NOT NULL,
   "damaged_count" INTEGER NOT NULL,
   "moved_count" INTEGER NOT NULL,
   "marked_below" INTEGER NOT NULL,
   "rest_delays" BLOB NOT NULL,
   "retried_count" INTEGER NOT NULL,
   "applied_end" INTEGER NOT NULL,
   "redrive" INTEGER NOT NULL,
   "redriving" BLOB NOT NULL,
   "redrive_ms" INTEGER NOT NULL,
   "redrive_whole_keys" INTEGER NOT NULL,
   "errand" INTEGER NOT NULL,
   "errand_kind" TEXT NOT NULL,
   "errand_ranges" BLOB NOT NULL,
   "hurried" INTEGER NOT NULL,
   "hurried_ranges" BLOB NOT NULL,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL,
   PRIMARY KEY ("group_id", "storage_topic_id", "partition")
) STRICT, WITHOUT ROWID;

CREATE TABLE "sessions" (
   "client_id" TEXT PRIMARY KEY NOT NULL,
   "session_id" BLOB NOT NULL,
   "session_epoch" INTEGER NOT NULL,
   "expiry_ms" INTEGER NOT NULL,
   "disconnected_at_ms" INTEGER,
   "principal" TEXT NOT NULL,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE "subscriptions" (
   "session_id" BLOB NOT NULL,
   "subscription" INTEGER NOT NULL,
   "filter" TEXT NOT NULL,
   "group_id" INTEGER NOT NULL,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL,
   PRIMARY KEY ("session_id", "subscription")
) STRICT, WITHOUT ROWID;

CREATE TABLE "events" (
   "number" INTEGER PRIMARY KEY NOT NULL,
   "at_ms" INTEGER NOT NULL,
   "code" TEXT NOT NULL,
   "severity" TEXT NOT NULL,
   "subject" TEXT NOT NULL,
   "sentence" TEXT NOT NULL,
   "fields" TEXT NOT NULL,
   "times" INTEGER NOT NULL,
   "last_at_ms" INTEGER NOT NULL,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE "pending_moves" (
   "group_id" INTEGER NOT NULL,
   "storage_topic_id" INTEGER NOT NULL,
   "partition" INTEGER NOT NULL,
   "number" INTEGER NOT NULL,
   "dropped" BLOB NOT NULL,
   "added" BLOB NOT NULL,
   "redriven" BLOB NOT NULL,
   "discarded" BLOB NOT NULL,
   "redrive_ms" INTEGER NOT NULL,
   "redrive_whole_keys" INTEGER NOT NULL,
   "errand_kind" TEXT NOT NULL,
   "errand_ranges" BLOB NOT NULL,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL,
   PRIMARY KEY ("group_id", "storage_topic_id", "partition")
) STRICT, WITHOUT ROWID;

CREATE TABLE "made_moves" (
   "number" INTEGER NOT NULL,
   "storage_topic_id" INTEGER NOT NULL,
   "partition" INTEGER NOT NULL,
   "floor_before" INTEGER NOT NULL,
   "ranges_before" BLOB NOT NULL,
   "floor_after" INTEGER NOT NULL,
   "ranges_after" BLOB NOT NULL,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL,
   PRIMARY KEY ("number", "storage_topic_id", "partition")
) STRICT, WITHOUT ROWID;

CREATE TABLE "operations" (
   "number" INTEGER PRIMARY KEY NOT NULL,
   "operation_id" TEXT NOT NULL,
   "kind" TEXT NOT NULL,
   "subject" TEXT NOT NULL,
   "group_id" INTEGER NOT NULL,
   "state" TEXT NOT NULL,
   "asked" TEXT NOT NULL,
   "change" TEXT NOT NULL,
   "summary" TEXT NOT NULL,
   "reason" TEXT NOT NULL,
   "principal" TEXT NOT NULL,
   "origin" TEXT NOT NULL,
   "applied_at_ms" INTEGER NOT NULL,
   "ended_at_ms" INTEGER,
   "revision" INTEGER NOT NULL,
   "before" TEXT NOT NULL,
   "after" TEXT NOT NULL,
   "failure" TEXT NOT NULL,
   "undoes" INTEGER NOT NULL,
   "undone_by" INTEGER NOT NULL,
   "not_undoable_because" TEXT NOT NULL,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE "operation_ids" (
   "operation_id" TEXT PRIMARY KEY NOT NULL,
   "number" INTEGER NOT NULL,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE "bans" (
   "group_id" INTEGER NOT NULL,
   "client_id" TEXT NOT NULL,
   "until_ms" INTEGER NOT NULL,
   "number" INTEGER NOT NULL,
   "lasts_ms" INTEGER,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL,
   PRIMARY KEY ("group_id", "client_id")
) STRICT, WITHOUT ROWID;

CREATE TABLE "schedules" (
   "name" TEXT PRIMARY KEY NOT NULL,
   "schedule_id" INTEGER NOT NULL,
   "task" TEXT NOT NULL,
   "arguments" TEXT NOT NULL,
   "cron" TEXT NOT NULL,
   "time_zone" TEXT NOT NULL,
   "jitter_ms" INTEGER NOT NULL,
   "overlap" TEXT NOT NULL,
   "catch_up_ms" INTEGER NOT NULL,
   "timeout_ms" INTEGER NOT NULL,
   "retries" INTEGER NOT NULL,
   "backoff_ms" INTEGER NOT NULL,
   "paused" INTEGER NOT NULL,
   "since_ms" INTEGER NOT NULL,
   "created_at_ms" INTEGER NOT NULL,
   "revision" INTEGER NOT NULL,
   "principal" TEXT NOT NULL,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE "schedule_positions" (
   "schedule_id" INTEGER PRIMARY KEY NOT NULL,
   "cursor_ms" INTEGER NOT NULL,
   "last_run" INTEGER NOT NULL,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE "schedule_runs" (
   "schedule_id" INTEGER NOT NULL,
   "run" INTEGER NOT NULL,
   "due_ms" INTEGER NOT NULL,
   "cause" TEXT NOT NULL,
   "state" TEXT NOT NULL,
   "attempt" INTEGER NOT NULL,
   "started_at_ms" INTEGER,
   "ended_at_ms" INTEGER,
   "retry_at_ms" INTEGER,
   "operation" INTEGER NOT NULL,
   "output" TEXT NOT NULL,
   "failure" TEXT NOT NULL,
   "count" INTEGER NOT NULL,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL,
   PRIMARY KEY ("schedule_id", "run")
) STRICT, WITHOUT ROWID;

CREATE TABLE "principals" (
   "name" TEXT PRIMARY KEY NOT NULL,
   "permissions" TEXT NOT NULL,
   "secret" BLOB NOT NULL,
   "older_secret" BLOB NOT NULL,
   "older_until_ms" INTEGER NOT NULL,
   "expires_at_ms" INTEGER,
   "created_at_ms" INTEGER NOT NULL,
   "created_by" TEXT NOT NULL,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
