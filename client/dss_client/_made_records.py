"""Records that `Subscription.fetch` has made of several pieces, and not handed out yet.

Making many takes a while, and the process may stand still meanwhile. Invariant: the made records
are either handed out all at once, or put back all at once and come first again.
"""

from collections.abc import Callable
from itertools import islice

from dss_client._handout import Handout
from dss_client.record import DeliveredRecord, row_of


class MadeRecords:
    """Made records, in the order of their pieces."""

    def __init__(self) -> None:
        self.count = 0
        self._pieces: list[tuple[Handout, list[DeliveredRecord]]] = []

    def make(self, handout: Handout, wanted: int) -> int:
        """Make the next records of a piece, unless it was stopped; returns how many are made now,
        of all pieces.
        """
        left = 0 if handout.stopped else wanted - self.count
        records = list(islice(handout.records(), left)) if left else []
        self._pieces.append((handout, records))
        self.count += len(records)
        return self.count

    def are_of_different_keys(self) -> bool:
        """Whether no two have the same key."""
        made = (record for _, records in self._pieces for record in records)
        keys = [record.key for record in made if record.key is not None]
        return len(set(keys)) == len(keys)

    def handed_out(self, wanted: int, finish: Callable[[Handout], None]) -> list[DeliveredRecord]:
        """Hand out all of them; ``finish`` is called with each piece that is used up."""
        handed_out: list[DeliveredRecord] = []
        for handout, records in self._pieces:
            if records:
                handout.last_offset = records[-1]._at
            handed_out += records
            if len(handed_out) < wanted:
                finish(handout)
        return handed_out

    def put_back(self) -> list[Handout]:
        """Hand out none; returns the pieces, which have their records again."""
        for handout, records in self._pieces:
            handout.put_back(*map(row_of, records))
        return [handout for handout, _ in self._pieces]
