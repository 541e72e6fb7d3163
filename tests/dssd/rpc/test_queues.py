"""The servicer of queues: what is refused before a log is asked, and how an entry is encoded."""

from typing import Any

import pytest

from dss_api.v1 import queues_pb2
from dss_core.errors import IllegalArgument, IllegalName
from dss_core.ids import StreamId, StreamName
from dss_core.lane import DEAD, LaneEntry
from dss_core.limits import KEY_BYTES_MAX
from dssd.questions.queues import EntriesAsked, EntriesPage
from dssd.queues.looking import Choice, QueueEntry
from dssd.rpc.queues import QueuesServicer
from support.loop_yields import turns_of_others

NO_CONTEXT: Any = None
NO_QUESTIONS: Any = None


class Answered:
    """Answers each question with so many entries."""

    def __init__(self, count: int = 1) -> None:
        self._count = count

    async def entries(self, asked: EntriesAsked, token: str, *, whole: bool) -> EntriesPage:
        assert asked == EntriesAsked("g", DEAD, Choice("abc", b"", StreamName("orders", 0, 3), 17))
        assert token == "1/2/3"
        entry = LaneEntry(0, 17, 0, 3, 17, 5, 4, fingerprint=0xABC, error_type="OSError")
        stream = StreamName("orders", 0, 3)
        queue = StreamId(9, 3)
        headers = (("trace", b"t"),)
        found = QueueEntry(
            stream, DEAD, queue, 7, "s", b"", b"payload", headers, 99, "no route", entry
        )
        return EntriesPage((found,) * self._count, "next", 12)


def request(**fields: Any) -> queues_pb2.ListEntriesRequest:  # noqa: ANN401 - of any type
    return queues_pb2.ListEntriesRequest(
        **{"group": "g", "level": queues_pb2.QUEUE_LEVEL_DEAD, **fields}
    )


@pytest.mark.parametrize("whole", [False, True])
async def test_an_entry_is_told_with_its_payload_and_headers_where_it_is_wanted_whole(
    whole: bool,
) -> None:
    questions: Any = Answered()
    wanted = request(
        error="abc", key=b"", stream="orders/0/3", offset=17, page_token="1/2/3", whole=whole
    )
    reply = await QueuesServicer(questions).List(wanted, NO_CONTEXT)
    assert (reply.next_page_token, reply.total) == ("next", 12)
    [entry] = reply.entries
    assert (entry.stream, entry.offset, entry.queue_offset) == ("orders/0/3", 17, 7)
    assert (entry.attempt, entry.error, entry.fingerprint) == (4, "no route", "0000000000000abc")
    assert (entry.HasField("key"), entry.payload_bytes) == (True, 7)
    assert entry.payload == (b"payload" if whole else b"")
    assert [each.name for each in entry.headers] == (["trace"] if whole else [])


@pytest.mark.usefixtures("short_turns")
async def test_a_page_of_many_entries_is_made_with_others_in_between() -> None:
    questions: Any = Answered(50)
    wanted = request(error="abc", key=b"", stream="orders/0/3", offset=17, page_token="1/2/3")
    listed = QueuesServicer(questions).List(wanted, NO_CONTEXT)
    assert await turns_of_others(listed) >= 50


@pytest.mark.parametrize(
    "fields",
    [
        {"level": queues_pb2.QUEUE_LEVEL_UNSPECIFIED},
        {"level": 7},
        {"offset": 3},
        {"key": b"k" * (KEY_BYTES_MAX + 1)},
        {"newest": 5, "error": "abc"},
        {"newest": 5, "page_token": "1/2/3"},
    ],
)
async def test_what_breaks_a_rule_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(IllegalArgument):
        await QueuesServicer(NO_QUESTIONS).List(request(**fields), NO_CONTEXT)


async def test_a_stream_that_is_none_is_refused() -> None:
    with pytest.raises(IllegalName):
        await QueuesServicer(NO_QUESTIONS).List(request(stream="orders"), NO_CONTEXT)
