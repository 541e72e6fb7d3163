from dss_core.frame import Header
from dssd.log.recovery.claimed_offsets import Claim, LogPosition, LostBytes, claims_of

HEADER = Header(200, 1, 0, 1, 5, 1, 1, bytes(16), 0, 0, 30, 0, 1, 7, 0)
"""Five records of stream 1, from offset 30 on."""


def test_unreadable_bytes_claim_offsets_of_every_stream() -> None:
    loss = LostBytes(LogPosition(3, 100), 50, None)
    claims = claims_of([loss], [10, 0, 7], {0: LogPosition(3, 60), 2: LogPosition(1, 64)})
    assert claims == [
        Claim(LogPosition(3, 100), 0, 10, 60),
        Claim(LogPosition(3, 100), 1, 0, 50),
        Claim(LogPosition(3, 100), 2, 7, 57),
    ], "the bytes may have held all frames of a stream that has none left"


def test_claims_of_a_sealed_stream_stop_at_its_end() -> None:
    loss = LostBytes(LogPosition(3, 100), 50, None)
    claims = claims_of([loss], [10, 0, 7], {}, sealed_ends=[12, 0, 7])
    assert claims == [Claim(LogPosition(3, 100), 0, 10, 12)]


def test_a_later_frame_proves_where_its_stream_stands() -> None:
    loss = LostBytes(LogPosition(3, 100), 50, None)
    assert claims_of([loss], [10, 9], {0: LogPosition(3, 150), 1: LogPosition(4, 64)}) == []


def test_a_whole_header_names_the_stream_of_the_lost_records() -> None:
    loss = LostBytes(LogPosition(3, 100), 50, HEADER)
    assert claims_of([loss], [10, 30], {}) == [Claim(LogPosition(3, 100), 1, 30, 35)]
    assert claims_of([loss], [10, 40], {1: LogPosition(3, 150)}) == []
    assert claims_of([loss], [10], {}) == [], "of a partition that does not exist"


def test_claims_of_several_losses_follow_each_other() -> None:
    losses = [LostBytes(LogPosition(3, 100), 50, None), LostBytes(LogPosition(4, 64), 20, None)]
    claims = claims_of(losses, [10], {0: LogPosition(3, 64)})
    assert claims == [Claim(LogPosition(3, 100), 0, 10, 60), Claim(LogPosition(4, 64), 0, 60, 80)]
