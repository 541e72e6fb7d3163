"""What a vectored write that took only some of its bytes left."""

from collections.abc import Sequence
from typing import TypeVar

from dss_core.subject_table import Buffer

B = TypeVar("B", bound=Buffer)


def unwritten(buffers: Sequence[B], written: int) -> Sequence[B | memoryview]:
    """The buffers without their first ``written`` bytes."""
    for index, buffer in enumerate(buffers):
        if written < len(buffer):
            head = [memoryview(buffer)[written:]] if written else [buffer]
            return [*head, *buffers[index + 1 :]]
        written -= len(buffer)
    return []
