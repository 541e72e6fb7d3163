"""How this process's heap is kept, for messages of hundreds of kilobytes that come and go.

Invariant: nothing here changes what the program does, only what its memory costs.
"""

from dss_client.limits import HEAP_KEPT_BYTES


def keep_heap() -> None:
    """Let malloc serve large blocks from the heap, and keep it when they are freed.

    glibc maps large blocks anew each time, at a page fault every 4 KiB, until it has seen one of
    their size come back. The one here is never touched and costs nothing.
    """
    bytes(HEAP_KEPT_BYTES)
