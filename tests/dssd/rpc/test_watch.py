"""The servicer of watches: what a request may say, and how it is understood."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from dss_api.v1 import watch_pb2
from dss_core.errors import IllegalArgument
from dssd.machines.watch_board import Key, WatchTopic
from dssd.questions.watches import Token, Told, WatchRequest
from dssd.rpc.watch import WATCHED_GROUPS_MAX, WatchServicer

NO_CONTEXT: Any = None
"""These handlers do not ask their context anything."""


class Asked:
    """Notes what is asked, and tells that one thing is gone."""

    def __init__(self) -> None:
        self.asked: list[tuple[WatchRequest, Token | None]] = []

    async def watch(self, wanted: WatchRequest, token: Token | None) -> AsyncGenerator[Told, None]:
        self.asked.append((wanted, token))
        gone = Key(WatchTopic.LAGS, "g@orders/#", "orders/0/0")
        yield Told(True, [], [gone], Token(b"i", 7, 3))


async def understood(**request: Any) -> tuple[WatchRequest, Token | None, watch_pb2.WatchReply]:  # noqa: ANN401 # fields of a request
    watches: Any = Asked()
    replies = WatchServicer(watches).Watch(watch_pb2.WatchRequest(**request), NO_CONTEXT)
    (reply,) = [reply async for reply in replies]
    ((wanted, token),) = watches.asked
    return wanted, token, reply


async def test_a_request_without_anything_asks_for_all_that_is_shared() -> None:
    wanted, token, reply = await understood()
    assert (wanted, token) == (WatchRequest(frozenset(WatchTopic)), None)
    assert reply.anew
    assert reply.removed[0] == watch_pb2.WatchedKey(
        topic=watch_pb2.WATCH_TOPIC_LAGS, group="g@orders/#", name="orders/0/0"
    )
    assert (reply.token.instance, reply.token.revision, reply.token.event_number) == (b"i", 7, 3)


async def test_groups_are_named_as_everywhere_and_a_token_comes_back_as_it_was() -> None:
    wanted, token, _ = await understood(
        topics=[watch_pb2.WATCH_TOPIC_GRANTS],
        groups=["g", "h@orders/#", "$share/i/orders/#"],
        all=True,
        token=watch_pb2.WatchToken(instance=b"i", revision=7, event_number=3),
    )
    assert wanted.topics == {WatchTopic.GRANTS}
    assert wanted.groups == {"g", "h@orders/#", "i@orders/#"}
    assert wanted.private
    assert token == Token(b"i", 7, 3)


@pytest.mark.parametrize(
    "request_fields",
    [
        {"topics": [99]},
        {"topics": [watch_pb2.WATCH_TOPIC_UNSPECIFIED]},
        {"groups": ["g"] * (WATCHED_GROUPS_MAX + 1)},
        {"token": watch_pb2.WatchToken(event_number=1 << 63)},
        {"token": watch_pb2.WatchToken(revision=1 << 63)},
    ],
)
async def test_what_a_request_may_not_say_is_refused(request_fields: dict[str, Any]) -> None:
    with pytest.raises(IllegalArgument):
        await understood(**request_fields)
