"""Makes malloc keep memory for messages of hundreds of kilobytes that come and go.

Invariant: this changes how fast memory is allocated, and nothing else.
"""

from dss_client.limits import HEAP_KEPT_BYTES


def keep_heap() -> None:
    """Let malloc serve large blocks from the heap, and keep it when they are freed.

    glibc maps each large block anew, at a page fault every 4 KiB, until a block of that size has
    been freed once. So one is freed here; its pages are never touched and cost nothing.
    """
    bytes(HEAP_KEPT_BYTES)
