"""Drivers of bulk jobs without a cluster: replay, export, backfill and audit in one process.

A job is cut into chunks by the daemon, once. A driver takes the chunks in their order and does
the same with each: read, work, stage, commit::

    source ──► Table ──► work of the kind ──► staged file ──► Commit(chunk) ──► next chunk
    (wire, file)        (copies, rows, ...)   (or a Parquet file)

Invariant: what a chunk gives follows from the manifest alone, so a driver that dies is replaced
by another one that begins at the first chunk that is not committed. Whatever decides which records
there are and where they go is a plain function over Arrow tables, which a driver on Spark shares.
`docs/bulk.md` tells of jobs, leases and staged files.
"""
