"""Drivers of bulk jobs without a cluster: replay, export, backfill and audit in one process.

A job is cut into chunks by the daemon, once. A driver takes the chunks in their order and does
the same with each: read, work, stage, commit::

    source ──► Table ──► work of the kind ──► staged file ──► Commit(chunk) ──► next chunk
    (wire, file)        (copies, rows, ...)   (or a Parquet file)

Invariant: the result of a chunk follows from the manifest alone, so another driver can replace one
that dies, and begins at the first chunk that is not committed. All code that decides which records
there are and where they go is a plain function over Arrow tables, which a driver on Spark shares.
`docs/bulk.md` tells of jobs, leases and staged files.
"""
