"""Power loss at every point of a real run.

::

    script ──strace──▶ trace: operations ──▶ model: what a disk may hold ──▶ crashes: which states
                                                                              │
   promises: what was told by then ──▶ recovery_check ◀── daemon_parts ◀── image_files

`operations`, `trace`, `image`, `model`, `crashes` and `promises` are pure; the others touch files.
"""
