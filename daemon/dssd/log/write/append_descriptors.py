"""The open descriptors of files that take frames: those of the most recently used files.

Every topic in use has a file, and there are far fewer descriptors. Used only by the writer thread.

Invariant: a file is closed only after all in it is durable.
"""

from collections import OrderedDict

from dssd.descriptors import shortage_in
from dssd.log.disk_errors import is_full
from dssd.log.segment.file import SegmentWriter


class AppendDescriptors:
    """At most ``descriptors_max`` open files, unless a full disk prevents closing one."""

    __slots__ = ("_descriptors_max", "_open")

    def __init__(self, descriptors_max: int) -> None:
        self._descriptors_max = descriptors_max
        self._open: OrderedDict[SegmentWriter, None] = OrderedDict()

    def __len__(self) -> int:
        """How many files have a descriptor."""
        return len(self._open)

    def use(self, file: SegmentWriter) -> None:
        """Open a file unless it is open; close others for it if necessary.

        Raises:
            OSError: no descriptor is left, or the disk failed.
        """
        if file.is_open:
            self._open.move_to_end(file)
            return
        while len(self._open) >= self._descriptors_max and self._close_one():
            pass
        while True:
            try:
                file.open()
            except OSError as error:
                if shortage_in(error) is None or not self._close_one():
                    raise
                continue
            break
        self._open[file] = None

    def close(self, file: SegmentWriter) -> None:
        """Close a file for good."""
        self._open.pop(file, None)
        file.close()

    def _close_one(self) -> bool:
        """Close the file that was used longest ago, if possible one that needs no sync."""
        whole = (file for file in self._open if file.synced == file.size)
        first = next(whole, None)
        for file in [first] if first is not None else list(self._open):
            try:
                file.sync()
            except OSError as error:
                if not is_full(error):
                    raise
                continue
            self.close(file)
            return True
        return False
