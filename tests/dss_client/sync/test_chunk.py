import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain
from typing import Self

import pytest

from dss_client import DeliveredRecord
from dss_client._grant import HeldGrant
from dss_client._handout import Handout
from dss_client.limits import HANDY_RECORDS
from dss_client.sync._chunk import Chunk
from dss_core.build import build_frame
from dss_core.columns import Columns

COUNT = 20 * HANDY_RECORDS + 7


def handout_of(count: int) -> Handout:
    grant = HeldGrant(
        1,
        subscription=1,
        stream="t/0/0",
        grant_epoch=1,
        floor=0,
        redelivered_below=0,
        touched=lambda _grant, _urgent: None,
    )
    columns = Columns([b"x"] * count, [None] * count, "t")
    frame = build_frame(columns, partition=0, producer_id=b"p" * 16, sequence=0)
    return Handout(grant, frame, (), redelivered=False, attempt=1)


def offsets(chunk: Chunk) -> Iterator[int]:
    """What a thread takes of it."""
    while chunk.lay_out():
        for record in chunk.rows:
            yield record.offset


def test_a_piece_knows_how_far_its_chunk_was_handed_out() -> None:
    handout = handout_of(COUNT)
    chunk = Chunk(handout, COUNT)
    chunk.note()
    assert handout.last_offset == -1
    taken = offsets(chunk)
    for offset in taken:
        chunk.note()
        assert handout.last_offset == offset
    assert offset == COUNT - 1
    assert handout.exhausted
    assert chunk.is_spent


def test_a_chunk_takes_no_more_of_its_piece_than_it_may() -> None:
    handout = handout_of(COUNT)
    assert [*offsets(Chunk(handout, 200))] == [*range(200)]
    assert [record.offset for record in handout.records()] == [*range(200, COUNT)]


@pytest.mark.parametrize("taken", [0, 1, HANDY_RECORDS, HANDY_RECORDS + 1, COUNT])
def test_what_is_left_of_a_chunk_that_is_called_back_comes_first_again(taken: int) -> None:
    handout = handout_of(COUNT)
    chunk = Chunk(handout, COUNT)
    records = offsets(chunk)
    before = [next(records) for _ in range(taken)]
    chunk.call_back()
    assert handout.last_offset == taken - 1
    assert [*records] == []
    again = Chunk(handout, COUNT)
    assert [*before, *offsets(again)] == [*range(COUNT)]


def test_threads_and_a_loop_that_calls_back_share_records_without_a_loss_or_a_double() -> None:
    handout = handout_of(COUNT)
    open_chunk = [Chunk(handout, COUNT)]
    over = threading.Event()

    def take() -> list[int]:
        mine: list[int] = []
        while not over.is_set():
            mine.extend(offsets(open_chunk[0]))
        return mine

    with ThreadPoolExecutor(3) as pool:
        taking = [pool.submit(take) for _ in range(3)]
        while not handout.exhausted:
            open_chunk[0].call_back()
            open_chunk[0] = Chunk(handout, COUNT)
        over.set()
    assert sorted(chain(*(each.result() for each in taking))) == [*range(COUNT)]


def test_a_thread_takes_a_record_only_after_what_it_took_is_noted() -> None:
    handout = handout_of(COUNT)
    chunk = Chunk(handout, COUNT)
    for offset in offsets(chunk):
        # Also where the records that were laid out before are gone.
        assert handout.last_offset in range(-1, offset)


class Interrupted(DeliveredRecord):
    """A record in whose making Ctrl-C comes, at certain ones."""

    __slots__ = ()
    made = 0

    def __new__(cls) -> Self:
        cls.made += 1
        if cls.made in {3, 200, 900}:
            raise KeyboardInterrupt
        return super().__new__(cls)


def test_an_interrupt_while_records_are_made_loses_none() -> None:
    handout = handout_of(COUNT)
    handout.kind = Interrupted
    chunk: Chunk | None = None
    found: list[int] = []
    for _ in range(4):
        with suppress(KeyboardInterrupt):
            chunk = chunk or Chunk(handout, COUNT)
            for offset in offsets(chunk):
                found.append(offset)  # noqa: PERF402 - what came before an interrupt counts
    assert chunk is not None
    chunk.note()
    assert found == [*range(COUNT)]
    assert handout.exhausted


def test_a_thread_that_looks_again_at_what_was_called_back_hands_out_nothing_by_that() -> None:
    handout = handout_of(20)
    chunk = Chunk(handout, 20)
    assert next(chunk.rows).offset == 0
    chunk.call_back()
    assert not chunk.lay_out()
    chunk.note()
    assert handout.last_offset == 0
    assert [record.offset for record in handout.records()] == [*range(1, 20)]
