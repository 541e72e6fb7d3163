CREATE TABLE "incarnations" (
   "number" INTEGER PRIMARY KEY NOT NULL,
   "incarnation" BLOB NOT NULL,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
