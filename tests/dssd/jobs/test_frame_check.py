"""What is checked of staged frames: each by itself, however many are looked at at once."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from dss_core.arrow_layout import HEADERS_TYPE
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.errors import StagedFileRefused
from dss_core.filters import TopicFilter
from dss_core.frame import HEADER_BYTES
from dss_core.limits import HEADER_BYTES_MAX, HEADERS_MAX, KEY_BYTES_MAX
from dss_core.producer_ids import NO_PRODUCER
from dss_core.routing import Router, key_hash, partition_of
from dss_core.staged import StagedFile, StagedFor, StagedWriter
from dssd.jobs.frame_check import FrameCheck
from dssd.jobs.staging import checked_frames
from dssd.limits import HASH_KEYS_ONE_FRAME_IN
from dssd.topics.model import StorageTopic, Topic

FOR = StagedFor(job_id=7, chunk=3, storage_topic_id=2)
PART = StorageTopic(2, 0, partitions=4, factor=1, ends=None)
PATTERNS = (TopicFilter.parse("orders/#"),)
TOPIC = Topic(1, "orders", PATTERNS, Router.BLOCK, "sync", 1, 0, (PART,), None, None, 0)
RECORDS = 40


def keys_of(partition: int, count: int = RECORDS) -> list[bytes]:
    keys = (b"k%d" % number for number in range(100 * RECORDS))
    own = (key for key in keys if partition_of(Router.BLOCK, key_hash(key), 4, 1) == partition)
    return [next(own) for _ in range(count)]


def frame(
    partition: int = 0,
    *,
    keys: list[bytes | None] | None = None,
    headers: list[tuple[str, bytes]] | None = None,
    subject: str = "orders/new",
    producer_id: bytes = NO_PRODUCER,
    sequence: int = 0,
    named: int | None = None,
    hashes: list[int] | None = None,
) -> bytes:
    """A frame of a partition; ``named`` is the one that it says it is of."""
    given = keys_of(partition) if keys is None else keys
    columns = Columns(
        payloads=pa.array([b"p"] * len(given), pa.binary()),
        keys=pa.array(given, pa.binary()),
        subjects=subject,
        headers=pa.array([headers or [("n", b"v")]] * len(given), HEADERS_TYPE),
        key_hashes=None if hashes is None else pa.array(hashes, pa.uint64()),
    )
    return build_frame(
        columns,
        partition=partition if named is None else named,
        producer_id=producer_id,
        sequence=sequence,
        limits=None,
    )


def staged(directory: Path, frames: list[bytes], records: int | None = None) -> StagedFile:
    with StagedWriter(directory, FOR) as writer:
        for each in frames:
            writer.add_frame(each, RECORDS if records is None else records)
        return writer.finish()


def checked(directory: Path, frames: list[bytes]) -> bytes:
    files = [staged(directory, frames)]
    check = FrameCheck(TOPIC, PART)
    found = checked_frames(directory, "a job", files, FOR, check)
    return b"".join(bytes(each) for some in found for each in some)


GOOD = [frame(partition) for partition in range(4)]


def test_frames_of_any_partition_come_as_they_were_staged(tmp_path: Path) -> None:
    few = keys_of(1, 3)
    mixed: list[bytes | None] = [None if row % 2 else key for row, key in enumerate(keys_of(2))]
    copied = frame(0, headers=[("dss-origin", b"s/0/0@1"), ("dss-hop", b"1")])
    frames = [*GOOD, copied, frame(3, keys=[None] * RECORDS), frame(2, keys=mixed), GOOD[1]]
    assert checked(tmp_path, frames) == b"".join(frames)

    rows = frame(1, keys=list(few))
    files = [staged(tmp_path, [rows], 3), staged(tmp_path, GOOD)]
    found = checked_frames(tmp_path, "a job", files, FOR, FrameCheck(TOPIC, PART))
    assert b"".join(bytes(each) for some in found for each in some) == rows + b"".join(GOOD)


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


BAD: dict[str, tuple[Callable[[], bytes], str]] = {
    "a flipped bit": (lambda: flipped(GOOD[0], len(GOOD[0]) - 9), "checksum of its body"),
    "a stamp": (lambda: flipped(GOOD[0], HEADER_BYTES - 20), "carries a stamp"),
    "a partition that there is not": (lambda: frame(0, named=4), "partition 4 of 4"),
    "another partition": (lambda: frame(0, named=1), "partition 1"),
    "one record of another partition": (
        lambda: frame(0, keys=[*keys_of(0, RECORDS - 1), *keys_of(1, 1)]),
        "partition 0",
    ),
    "a foreign subject": (lambda: frame(subject="bills/new"), "bills/new"),
    "a producer": (lambda: frame(producer_id=bytes(range(16))), "has a producer"),
    "a sequence": (lambda: frame(sequence=1), "has a producer"),
    "too many headers": (
        lambda: frame(headers=[("n", b"")] * (HEADERS_MAX + 1)),
        f"at most {HEADERS_MAX} headers",
    ),
    "too large headers": (
        lambda: frame(headers=[("n", bytes(HEADER_BYTES_MAX))]),
        f"at most {HEADER_BYTES_MAX} bytes",
    ),
    "a header of the daemon's own": (
        lambda: frame(headers=[("dss-origin", b"s/0/0@1"), ("dss-lane", b"")]),
        "header dss-lane",
    ),
    "too large a key": (
        lambda: frame(keys=[*keys_of(0, RECORDS - 1), bytes(KEY_BYTES_MAX + 1)]),
        "a key has at most",
    ),
}


@pytest.mark.parametrize("wrong", BAD)
def test_one_bad_frame_among_good_ones_is_refused_and_it_is_said_why(
    tmp_path: Path, wrong: str
) -> None:
    bad, why = BAD[wrong]
    with pytest.raises(StagedFileRefused, match=why):
        checked(tmp_path, [*GOOD, bad(), *GOOD])


def test_a_forged_hash_is_found_in_the_frames_whose_keys_are_hashed(tmp_path: Path) -> None:
    forged = frame(0, keys=[*keys_of(1)], hashes=[key_hash(key) for key in keys_of(0)])
    frames = [GOOD[0]] * HASH_KEYS_ONE_FRAME_IN
    with pytest.raises(StagedFileRefused, match="not the hash of its key"):
        checked(tmp_path, [*frames, forged])
    assert checked(tmp_path, [*frames, GOOD[0], forged])  # a sample is no proof


def test_a_file_with_other_records_than_was_said_is_refused(tmp_path: Path) -> None:
    files = [staged(tmp_path, GOOD, RECORDS + 1)]
    with pytest.raises(StagedFileRefused, match="records, not"):
        list(checked_frames(tmp_path, "a job", files, FOR, FrameCheck(TOPIC, PART)))
