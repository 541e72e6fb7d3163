"""Targets of moves of cursors, over streams whose records have known times."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from dss_core.changes import ByRecords, ToTime
from dss_core.ids import StreamId, StreamName
from dss_core.progress import Progress
from dssd.leaders.lag import StreamSurvey
from dssd.log.port import Bounds
from dssd.machines.leader.events import StreamView
from dssd.operations.cursor_targets import found_target, times_of_span

MINUTE_US = 60_000_000


class TimedLog:
    """Streams that hold a record at each of their times."""

    def __init__(self, times: Mapping[StreamId, Sequence[int]]) -> None:
        self._times = times

    def bounds(self, stream: StreamId) -> Bounds:
        return Bounds(0, len(self._times[stream]), 0)

    async def time_at(self, stream: StreamId, offset: int) -> int | None:
        times = self._times[stream]
        return times[offset] if offset < len(times) else None

    async def locate(self, stream: StreamId, time_us: int) -> int:
        return bisect_left(self._times[stream], time_us)


def survey(stream: StreamId, floor: int, end: int) -> StreamSurvey:
    state = "finished" if floor == end else "free"
    view = StreamView(stream, state, "", 0, Progress(floor), 0)
    name = StreamName("orders", stream.storage_topic_id, stream.partition)
    return StreamSurvey(name, view, end, end - floor, lag_exact=True)


def minutes(*at: float) -> list[int]:
    return [round(each * MINUTE_US) for each in at]


async def moved(
    log: Any,  # noqa: ANN401 - of a log only what is asked here
    streams: Sequence[StreamSurvey],
    span_min: float,
) -> list[int]:
    found = await times_of_span(round(span_min * 60_000), streams, log)
    targets = [await found_target(found[each.name.topic], each, log) for each in streams]
    return [target.offset for target in targets]


@pytest.mark.parametrize(
    ("span_min", "targets"),
    [
        (-15, [3, 2, 0, 0]),  # 115: all of the sealed one lies before, nothing of it comes again
        (-27, [2, 2, 0, 0]),  # 103
        (-125, [0, 0, 0, 0]),  # 5
        (5, [3, 2, 2, 1]),  # 135
        (1_000, [3, 2, 3, 2]),
    ],
)
async def test_a_span_leads_to_one_time_for_all_storage_topics_of_a_topic(
    span_min: float, targets: list[int]
) -> None:
    ended, idle, read, behind = (StreamId(0, 0), StreamId(0, 1), StreamId(1, 0), StreamId(1, 1))
    times = {
        ended: minutes(90, 100, 110),
        idle: minutes(10, 20),
        read: minutes(120, 130, 140),
        behind: minutes(125, 139),
    }
    floors = {ended: 3, idle: 2, read: 1, behind: 0}
    streams = [survey(one, floors[one], len(times[one])) for one in times]
    assert await moved(TimedLog(times), streams, span_min) == targets


async def test_a_span_leads_nowhere_where_no_record_tells_a_time() -> None:
    streams = [survey(StreamId(1, 0), 0, 0), survey(StreamId(1, 1), 0, 0)]
    log: Any = TimedLog({each.view.stream: () for each in streams})
    assert await times_of_span(-1_000, streams, log) == {"orders": ByRecords(0)}
    assert await moved(log, streams, -1) == [0, 0]


async def test_each_topic_has_a_time_of_its_own() -> None:
    one, other = survey(StreamId(1, 0), 1, 1), survey(StreamId(2, 0), 1, 1)
    other_name = StreamName("bills", 0, 0)
    log: Any = TimedLog({StreamId(1, 0): minutes(10), StreamId(2, 0): minutes(500)})
    found = await times_of_span(-60_000, [one, _named(other, other_name)], log)
    assert found == {"orders": ToTime(9 * MINUTE_US), "bills": ToTime(499 * MINUTE_US)}


def _named(stream: StreamSurvey, name: StreamName) -> StreamSurvey:
    return StreamSurvey(name, stream.view, stream.end, stream.lag, stream.lag_exact)
