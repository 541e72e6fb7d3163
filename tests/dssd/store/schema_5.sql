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
