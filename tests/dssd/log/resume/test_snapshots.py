import errno
from pathlib import Path

import pytest

from dss_core.producer_ids import new_producer_id
from dssd.log.recent_sequences import FirstAnswer
from dssd.log.resume import snapshots
from dssd.log.segment.file import SegmentId, SegmentPaths
from dssd.log.sequences import Producers, SnapshotPosition

OLD, MIDDLE, NEW = (SegmentId(7, number) for number in (1, 2, 3))
PRODUCER = new_producer_id(1)


def encoded(segment: SegmentId, sequence: int) -> bytes:
    """A snapshot in which the producer sent this last."""
    producers = Producers(segment.storage_topic_id)
    producers.stored(0, PRODUCER, sequence, FirstAnswer(sequence, 1, 100))
    return producers.encode(SnapshotPosition(*segment, 64))


class Start:
    """Looks for snapshots, and hears what is said of those that are no use."""

    def __init__(self, directory: Path) -> None:
        self.paths = SegmentPaths(directory)
        self.told: list[tuple[Path, str]] = []

    def store(self, segment: SegmentId, sequence: int) -> Path:
        snapshots.store(self.paths, segment, encoded(segment, sequence))
        return self.paths.producers(segment)

    def newest(self) -> tuple[Producers, SnapshotPosition] | None:
        return snapshots.newest(self.paths, [OLD, MIDDLE, NEW], self._hear)

    def _hear(self, path: Path, what: str) -> None:
        self.told.append((path, what))


@pytest.fixture
def start(tmp_path: Path) -> Start:
    return Start(tmp_path)


def refuse_reads(monkeypatch: pytest.MonkeyPatch, refused: Path, number: int) -> None:
    read_bytes = Path.read_bytes

    def read(path: Path) -> bytes:
        if path == refused:
            raise OSError(number, "as a disk does")
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", read)


def test_the_newest_snapshot_that_is_there_is_taken(start: Start) -> None:
    assert start.newest() is None
    start.store(OLD, 3)
    start.store(MIDDLE, 5)
    found = start.newest()
    assert found is not None
    producers, covered = found
    assert covered == (*MIDDLE, 64)
    assert isinstance(producers.first_answer(0, PRODUCER, 5), FirstAnswer)
    assert start.told == []


@pytest.mark.parametrize("cut", [False, True])
def test_behind_a_damaged_snapshot_the_older_one_is_taken_and_the_damage_told(
    start: Start, cut: bool
) -> None:
    start.store(OLD, 3)
    damaged = start.store(NEW, 9)
    content = bytearray(damaged.read_bytes())
    content[-9] ^= 1
    damaged.write_bytes(content[: len(content) // 2] if cut else content)
    found = start.newest()
    assert found is not None
    assert found[1] == (*OLD, 64)
    [(path, what)] = start.told
    assert path == damaged
    assert what.startswith("rebuilt: ")


def test_a_snapshot_that_the_disk_cannot_read_counts_as_lost(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    start.store(OLD, 3)
    bad = start.store(NEW, 9)
    refuse_reads(monkeypatch, bad, errno.EIO)
    found = start.newest()
    assert found is not None
    assert found[1] == (*OLD, 64)
    assert start.told == [(bad, "rebuilt: unreadable")]


def test_a_failure_that_does_not_mean_a_loss_lets_no_older_snapshot_take_its_place(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    start.store(OLD, 3)
    refuse_reads(monkeypatch, start.store(NEW, 9), errno.EMFILE)
    with pytest.raises(OSError, match="as a disk does"):
        start.newest()


def test_what_is_handed_down_is_known_beside_the_successor(start: Start) -> None:
    start.store(OLD, 3).replace(start.paths.producers(MIDDLE))
    snapshots.hand_down(start.paths, MIDDLE, NEW)
    start.paths.producers(MIDDLE).unlink()
    found = start.newest()
    assert found is not None
    assert isinstance(found[0].first_answer(0, PRODUCER, 3), FirstAnswer)


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EIO])
def test_a_snapshot_that_is_lost_leaves_that_of_the_successor_as_it_is(
    start: Start, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    before = start.store(NEW, 9).read_bytes()
    refuse_reads(monkeypatch, start.paths.producers(OLD), number)
    snapshots.hand_down(start.paths, OLD, NEW)
    assert start.paths.producers(NEW).read_bytes() == before


def test_a_snapshot_that_may_still_be_there_is_not_passed_over(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_reads(monkeypatch, start.store(OLD, 3), errno.EMFILE)
    with pytest.raises(OSError, match="as a disk does"):
        snapshots.hand_down(start.paths, OLD, NEW)
