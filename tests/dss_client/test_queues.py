"""What `client.queues` makes of several answers, and which arguments it refuses itself."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from dss_api.v1 import queues_pb2, types_pb2
from dss_client.queues import Queues
from dss_core.errors import IllegalArgument


class Answers:
    """Stands for the connection: gives replies in order, and keeps the tokens that it was asked."""

    queues = SimpleNamespace(List=None, Errors=None, Keys=None)

    def __init__(self, *replies: Any) -> None:  # noqa: ANN401 - of any method
        self._replies = list(replies)
        self.tokens: list[str] = []

    async def ask(self, _method: object, request: Any) -> Any:  # noqa: ANN401 - of any method
        self.tokens.append(request.page_token)
        return self._replies.pop(0)


def queues_of(*replies: object) -> tuple[Queues, Answers]:
    answers: Any = Answers(*replies)
    return Queues(answers), answers


def entry(offset: int) -> queues_pb2.QueueEntry:
    headers = [types_pb2.Header(name="trace", value=b"t")] * 2
    level = queues_pb2.QUEUE_LEVEL_DEAD
    return queues_pb2.QueueEntry(
        stream="orders/0/3", offset=offset, level=level, key=b"", headers=headers
    )


def listed(offsets: Sequence[int], token: str) -> queues_pb2.ListEntriesReply:
    return queues_pb2.ListEntriesReply(entries=map(entry, offsets), next_page_token=token, total=9)


def counted(token: str, **counts: int) -> queues_pb2.CountErrorsReply:
    errors = [
        queues_pb2.ErrorCount(
            fingerprint=name, cause="refused", error=f"{name}{token}", count=count
        )
        for name, count in counts.items()
    ]
    return queues_pb2.CountErrorsReply(errors=errors, next_page_token=token, total=50)


async def test_entries_come_page_by_page_until_there_is_no_more() -> None:
    queues, answers = queues_of(listed([1, 2], "a"), listed([], "b"), listed([5], ""))
    found = [each async for each in queues.dead_letters("g")]
    assert [each.offset for each in found] == [1, 2, 5]
    assert answers.tokens == ["", "a", "b"]
    assert (found[0].level, found[0].key) == ("dead", b"")
    assert found[0].headers == (("trace", b"t"), ("trace", b"t"))


async def test_errors_of_all_answers_are_added_up_or_of_so_many_entries() -> None:
    queues, answers = queues_of(counted("a", x=3, y=4), counted("", x=6))
    found = await queues.errors("g")
    assert [(each.fingerprint, each.count) for each in found.errors] == [("x", 9), ("y", 4)]
    assert (found.counted, found.total) == (13, 50)
    queues, answers = queues_of(counted("a", x=3, y=4), counted("", x=6))
    assert (await queues.errors("g", at_most=7)).counted == 7
    assert answers.tokens == [""]


async def test_keys_of_all_answers_are_added_up_and_the_oldest_of_each_is_its_first() -> None:
    def of(token: str, *keys: tuple[bytes, int, int]) -> queues_pb2.CountKeysReply:
        counts = [
            queues_pb2.KeyCount(key=key, count=count, oldest_us=at, newest_us=at, offset=at)
            for key, count, at in keys
        ]
        return queues_pb2.CountKeysReply(keys=counts, next_page_token=token, total=9)

    queues, _ = queues_of(of("a", (b"x", 3, 5), (b"y", 4, 6)), of("", (b"x", 2, 1)))
    found = await queues.keys("g")
    assert [(each.key, each.count, each.offset) for each in found.keys] == [
        (b"x", 5, 1),
        (b"y", 4, 6),
    ]
    assert (found.keys[0].oldest_us, found.keys[0].newest_us, found.looked_at_all) == (1, 5, True)
    queues, _ = queues_of(of("a", (b"x", 3, 5)))
    assert not (await queues.keys("g", at_most=3)).looked_at_all


async def test_what_an_older_daemon_passes_over_is_left_out_here() -> None:
    def told() -> queues_pb2.ListEntriesReply:
        reply = listed([1, 2], "")
        reply.entries[1].client_id, reply.entries[1].attempt = "ann", 3
        reply.entries[1].entered_at_us = 7
        return reply

    for chosen in ({"client_id": "ann"}, {"attempt": 2}, {"start_us": 7, "end_us": 8}):
        queues, _ = queues_of(told())
        found = [each async for each in queues.dead_letters("g", **chosen)]
        assert [each.offset for each in found] == [2]


async def test_the_newest_say_whether_fewer_came_than_there_are() -> None:
    queues, _ = queues_of(listed([1, 2], ""), listed(range(9), ""), listed([1], "cut"))
    assert (await queues.newest("g", 5)).is_cut
    assert not (await queues.newest("g", 20)).is_cut
    assert (await queues.newest("g", 1)).is_cut


async def test_what_can_never_be_is_refused() -> None:
    queues, _ = queues_of()
    with pytest.raises(IllegalArgument):
        await queues.newest("g", 0)
    with pytest.raises(IllegalArgument):
        await queues.peek("g", stream="orders/0/3", offset=-1)
    with pytest.raises(IllegalArgument):
        await queues.errors("g", level="both")
