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
