import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from dss_bulk.asked_ahead import AskedAhead


class Counted:
    """Numbers, and which of them were asked for."""

    def __init__(self, count: int, error: Exception | None = None) -> None:
        self.asked: list[int] = []
        self.is_closed = False
        self._count = count
        self._error = error

    async def items(self) -> AsyncGenerator[int, None]:
        try:
            for number in range(self._count):
                self.asked.append(number)
                yield number
            if self._error is not None:
                raise self._error
        finally:
            self.is_closed = True


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_all_items_come_in_their_order() -> None:
    async with aclosing(AskedAhead(Counted(4).items())) as items:
        assert [number async for number in items] == [0, 1, 2, 3]


async def test_the_next_item_is_asked_for_before_it_is_wanted() -> None:
    counted = Counted(4)
    async with aclosing(AskedAhead(counted.items())) as items:
        await settled()
        assert counted.asked == [0]
        assert await anext(items) == 0
        await settled()
        assert counted.asked == [0, 1], "one ahead, not more"


async def test_an_error_comes_behind_the_items_before_it() -> None:
    async with aclosing(AskedAhead(Counted(2, ValueError("no more")).items())) as items:
        await settled()
        assert await anext(items) == 0
        await settled()
        assert await anext(items) == 1
        await settled()
        with pytest.raises(ValueError, match="no more"):
            await anext(items)


async def test_what_was_asked_for_and_not_taken_is_let_go() -> None:
    counted = Counted(4)
    async with aclosing(AskedAhead(counted.items())) as items:
        assert await anext(items) == 0
    assert counted.is_closed
    before = set(counted.asked)
    await settled()
    assert set(counted.asked) == before
    assert len(asyncio.all_tasks()) == 1, "nothing is left running"


async def test_a_request_that_waits_is_ended_with_it() -> None:
    ended = asyncio.Event()

    async def never() -> AsyncGenerator[int, None]:
        try:
            await asyncio.Event().wait()
            yield 0
        finally:
            ended.set()

    async with aclosing(AskedAhead(never())):
        await settled()
        assert not ended.is_set()
    assert ended.is_set()
