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
