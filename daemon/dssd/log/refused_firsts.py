"""The first frames of unknown producers that found no room.

A client sends its next frames before it hears of a refusal. A known producer has a last sequence,
so what follows a refused frame follows a gap. Of an unknown producer any frame may be the first::

    sequence   0: the disk is full │ 1: a gap │ 2: a gap │ 0 again: stored │ 1: stored
               └── noted                                 └── forgotten

Without the note, sequence 2 would be stored if the disk has room by then. If the client had lost
its connection, it would send 0 and 1 again and learn that they are too old to tell what became of
them, although they were never stored.

Invariant: a producer is noted only while nothing of it is stored, and a note only refuses frames.
So to forget one early, because of the bound or a restart, makes an answer less certain, but not
wrong. Used by the writer thread alone.
"""

from collections import OrderedDict

from dssd.log.limits import PRODUCERS_REFUSED_MAX

Producer = tuple[int, int, bytes]
"""A storage topic, a partition, and the id of a producer."""


class RefusedFirsts:
    """Of each such producer, the sequence that it may begin with at most."""

    __slots__ = ("_firsts",)

    def __init__(self) -> None:
        self._firsts: OrderedDict[Producer, int] = OrderedDict()
        """The one that was noted longest ago comes first."""

    def __len__(self) -> int:
        """How many are noted."""
        return len(self._firsts)

    def first(self, producer: Producer) -> int | None:
        """The sequence that it may begin with at most; None if it may begin anywhere."""
        return self._firsts.get(producer)

    def note(self, producer: Producer, sequence: int) -> None:
        """This frame is to come again before any later one."""
        self._firsts[producer] = sequence
        self._firsts.move_to_end(producer)
        if len(self._firsts) > PRODUCERS_REFUSED_MAX:
            self._firsts.popitem(last=False)

    def forget(self, producer: Producer) -> None:
        """It has begun."""
        self._firsts.pop(producer, None)
