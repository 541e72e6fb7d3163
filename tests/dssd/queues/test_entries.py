"""What a holder knows of an entry that waits."""

import pytest

from dss_core.ids import StreamId
from dss_core.lane import MAIN, LaneEntry
from dss_core.limits import RESTORE_OFFSETS_RAISED
from dssd.queues.entries import stored
from dssd.queues.lane import Lane

LEVELS = (StreamId(1, 0), StreamId(2, 0), StreamId(3, 0))
RESTORES = 1_000


def origin(ordinal: int, offset: int) -> int:
    """Of a record of a storage topic, in a lane of the fifth."""
    lane = Lane(LEVELS, 5, 1, cursor_generation=0, client_id="", is_ordered=True)
    return stored(LaneEntry(MAIN, offset, ordinal, 0, offset, 0), b"key", lane, 0, 100).origin


@pytest.mark.parametrize("restores", [0, 1, RESTORES])
def test_records_of_a_key_are_in_order_over_storage_topics_however_often_backups_are_restored(
    restores: int,
) -> None:
    far = restores * RESTORE_OFFSETS_RAISED
    places = [(3, 7), (3, far + 8), (4, 0), (4, far + 9), (5, 0), (5, far + 10)]
    origins = [origin(*place) for place in places]
    assert origins == sorted(origins)
    assert [each >= 0 for each in origins] == [ordinal == 5 for ordinal, _ in places]
    assert origins[-1] == far + 10
