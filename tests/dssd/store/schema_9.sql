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
