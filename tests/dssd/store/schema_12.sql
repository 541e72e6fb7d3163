CREATE TABLE "storage_topics" (
   "topic_id" INTEGER NOT NULL,
   "ordinal" INTEGER NOT NULL,
   "storage_topic_id" INTEGER NOT NULL,
   "partitions" INTEGER NOT NULL,
   "factor" INTEGER NOT NULL,
   "ends" TEXT,
   "starts" TEXT NOT NULL,
   "begins_us" INTEGER NOT NULL,
   "version" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL,
   PRIMARY KEY ("topic_id", "ordinal")
) STRICT, WITHOUT ROWID;
