"""Chooses dead letters of one stream by whole keys: for a redrive in a group where they block.

All dead letters of a key wait for its first one, so a chosen one brings along the others of its
key. There are two passes over the queue: the first finds the chosen keys, the second all dead
letters of these. Invariant: a key is taken whole or not at all; if a pass does not reach the end of
the queue, nothing of the stream is taken.
"""

from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from itertools import islice

from dss_core.progress import Ranges, covers, normalised, runs_of, total
from dssd.look_thread import looked
from dssd.queues.choosing import keyed_in, keys_of_all_in
from dssd.queues.looking import Choice, EntryLook, Lane

KEYS_CHOSEN_MAX = 100_000
"""How many keys of one stream one redrive takes: some 10 MB while it is planned."""


@dataclass(frozen=True, slots=True)
class WholeKeys:
    """The dead letters of some keys."""

    ranges: Ranges = ()
    """The chosen entries, by offset in the queue of dead letters."""
    keys: int = 0
    meant: int = 0
    """How many of them were chosen; the others are of the same keys."""
    first_key: bytes = b""
    """The key of the first chosen one."""
    is_cut: bool = False
    """Not all keys that were meant fit."""
    is_beyond: bool = False
    """A pass did not reach the end of the queue, so nothing is chosen."""

    @property
    def along(self) -> int:
        """How many come along with those that were chosen."""
        return total(self.ranges) - self.meant


BEYOND = WholeKeys(is_beyond=True)


async def whole_keys(look: EntryLook, lane: Lane, choice: Choice, ranges_max: int) -> WholeKeys:
    """The whole keys of the chosen dead letters, as many as fit into so many ranges."""
    meant = await _meant(look, lane, choice)
    if look.budget.spent:
        return BEYOND
    offsets: dict[bytes | None, list[int]] = {key: [] for key in meant.keys}
    offsets[None] = meant.keyless
    async with aclosing(look.pieces(lane, keys_of_all_in, key=choice.key)) as pieces:
        async for _, found in pieces:
            for offset, key in found or ():
                if key in meant.keys:
                    offsets[key].append(offset)
    if look.budget.spent:
        return BEYOND
    return await looked(_fitting, meant, offsets, ranges_max)


async def first_heads(look: EntryLook, lane: Lane, ranges: Ranges, count: int) -> Ranges | None:
    """The first record in the ranges of each of so many keys; None: the pass did not reach the end
    of the queue, so they are not known."""
    heads: dict[bytes | int, tuple[tuple[int, int], int]] = {}
    async with aclosing(look.entries(lane, ranges[0][0])) as pieces:
        async for _, found in pieces:
            for each in found:
                if not covers(ranges, each.queue_offset):
                    continue
                name = each.queue_offset if each.key is None else each.key
                origin = each.entry.origin_ordinal, each.entry.origin_offset
                head = origin, each.queue_offset
                heads[name] = min(heads.get(name, head), head)
    if look.budget.spent:
        return None
    return runs_of(sorted([at for _, at in islice(heads.values(), count)]))


@dataclass(slots=True)
class _Meant:
    """The result of the first pass."""

    keys: dict[bytes | None, int]
    """How many records of each, in the order of their first ones."""
    keyless: list[int]
    """Offsets of records without a key; nothing waits for those."""
    is_cut: bool = False


async def _meant(look: EntryLook, lane: Lane, choice: Choice) -> _Meant:
    meant = _Meant({}, [])
    pieces_meant = look.pieces(lane, partial(keyed_in, choice), key=choice.key)
    async with aclosing(pieces_meant) as pieces:
        async for _, found in pieces:
            for offset, key in found or ():
                if key is None:
                    meant.keyless.append(offset)
                elif key in meant.keys or len(meant.keys) < KEYS_CHOSEN_MAX:
                    meant.keys[key] = meant.keys.get(key, 0) + 1
                else:
                    meant.is_cut = True
    return meant


def _fitting(meant: _Meant, offsets: dict[bytes | None, list[int]], ranges_max: int) -> WholeKeys:
    """All keys, or the first ones whose ranges fit even if each record is a range."""
    runs = {key: runs_of(each) for key, each in offsets.items()}
    every = normalised(span for each in runs.values() for span in each)
    count = len(meant.keyless) + sum(meant.keys.values())
    first = next((key for key in meant.keys if key), b"")
    if len(every) <= ranges_max:
        return WholeKeys(every, len(meant.keys), count, first, meant.is_cut)
    taken: list[tuple[int, int]] = []
    keys = count = 0
    for key, records in meant.keys.items():
        if len(taken) + len(runs[key]) > ranges_max:
            break
        taken += runs[key]
        keys, count = keys + 1, count + records
    if not keys:
        return BEYOND
    return WholeKeys(normalised(taken), keys, count, first, is_cut=True)
