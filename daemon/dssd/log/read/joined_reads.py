"""Which runs of a stream are read together: those that lie near to each other in their file.

A group commit writes one short run per stream. Reading a few kilobytes of other streams costs less
than one system call per run.

Invariant: runs that are read together follow each other without a lost record. Pure: no file, no
clock.
"""

from collections.abc import Sequence

from dssd.limits import READ_GAP_BYTES_MAX, READ_SPAN_BYTES_MAX
from dssd.log.segment.run_index import Run


def joined_read_end(runs: Sequence[Run], first: int, *, room_bytes: int, below: int | None) -> int:
    """The number after the last run that is read together with run ``first``.

    All of them together fit into ``room_bytes``; the first is read in any case. The others start
    below the offset ``below``, if it is given: from there on the stream is read from memory.
    """
    last = runs[first]
    stop_at = last.position + READ_SPAN_BYTES_MAX
    room_bytes -= last.length
    for number in range(first + 1, len(runs)):
        run = runs[number]
        behind = last.position + last.length
        room_bytes -= run.length
        if (
            room_bytes < 0
            or run.position - behind > READ_GAP_BYTES_MAX
            or run.position + run.length > stop_at
            or run.base != last.end
            or (below is not None and run.base >= below)
        ):
            return number
        last = run
    return len(runs)
