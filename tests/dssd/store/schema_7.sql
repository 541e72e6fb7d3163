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
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL
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
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL,
   PRIMARY KEY ("group_id", "storage_topic_id", "partition")
) STRICT, WITHOUT ROWID;

CREATE TABLE "pending_moves" (
   "group_id" INTEGER NOT NULL,
   "storage_topic_id" INTEGER NOT NULL,
   "partition" INTEGER NOT NULL,
   "number" INTEGER NOT NULL,
   "dropped" BLOB NOT NULL,
   "added" BLOB NOT NULL,
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
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL,
   PRIMARY KEY ("group_id", "client_id")
) STRICT, WITHOUT ROWID;
