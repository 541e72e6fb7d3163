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
