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
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL,
   PRIMARY KEY ("group_id", "storage_topic_id", "partition")
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
