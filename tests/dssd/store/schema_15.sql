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
