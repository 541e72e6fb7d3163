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
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE "stream_sets" (
   "group_id" INTEGER NOT NULL,
   "session_id" BLOB NOT NULL,
   "set_version" INTEGER NOT NULL,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL,
   PRIMARY KEY ("group_id", "session_id")
) STRICT, WITHOUT ROWID;
