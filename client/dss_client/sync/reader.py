"""Plain reading of a log from threads.

Invariant: as in the loop; a batch is fetched there and taken apart here.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dss_client.reader import Reader as AsyncReader
from dss_client.record import Batch, Record

if TYPE_CHECKING:
    from dss_client.sync._portal import Portal


class Reader:
    """Made by `Client.read`; iterate over it by record, or over its `batches`."""

    def __init__(self, portal: "Portal", reader: AsyncReader) -> None:
        self._portal = portal
        self._reader = reader

    @property
    def streams(self) -> tuple[str, ...]:
        """Every stream that is read, once the first answers came."""
        return self._reader.streams

    def __iter__(self) -> Iterator[Record]:
        """Records, one by one.

        Raises:
            StreamDamaged: all the rest came; these were the first records that cannot be read.
            DssError: the daemon refuses; or the connection was lost, and this does not follow.
        """
        for batch in self.batches():
            yield from batch

    def batches(self) -> Iterator[Batch]:
        """Records as columns.

        Raises:
            StreamDamaged: all the rest came; these were the first records that cannot be read.
            DssError: the daemon refuses; or the connection was lost, and this does not follow.
        """
        return self._portal.iterate(self._reader.batches())
