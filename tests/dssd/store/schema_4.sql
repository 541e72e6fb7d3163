CREATE TABLE "ceilings" (
   "storage_topic_id" INTEGER NOT NULL,
   "partition" INTEGER NOT NULL,
   "ceiling" INTEGER NOT NULL,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL,
   PRIMARY KEY ("storage_topic_id", "partition")
) STRICT, WITHOUT ROWID;
