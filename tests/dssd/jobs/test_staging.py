"""The staging area: what is swept, and what is not taken from it."""

from pathlib import Path

import pytest

from dssd.jobs.pacing import RESTED_MS_MAX, Pace
from dssd.jobs.staging import Staging


def touched(staging: Staging, job_id: int, epoch: int, *names: str) -> list[Path]:
    folder = staging.prepare(job_id, epoch)
    paths = [folder / name for name in names]
    for path in paths:
        path.touch()
    return paths


@pytest.fixture
def staging(tmp_path: Path) -> Staging:
    return Staging(tmp_path / "staging")


def test_a_higher_epoch_sweeps_what_lower_ones_staged(staging: Staging) -> None:
    [old] = touched(staging, 7, 1, "00000000-a.staged")
    [new] = touched(staging, 7, 2, "00000000-b.staged")
    assert (old.exists(), new.exists()) == (False, True)


def test_a_published_chunk_is_swept_and_its_neighbours_stay(staging: Staging) -> None:
    one, part, other, strange = touched(
        staging,
        7,
        1,
        "00000001-a.staged",
        "00000001-b.staged.part",
        "00000002-a.staged",
        "00000001-x",
    )
    staging.sweep_chunk(7, 1, 1)
    kept = [path.exists() for path in (one, part, other, strange)]
    assert kept == [False, False, True, True]


def test_a_start_keeps_the_newest_epoch_of_running_jobs_and_nothing_else(staging: Staging) -> None:
    [kept] = touched(staging, 7, 2, "00000000-a.staged")
    [ended] = touched(staging, 8, 1, "00000000-a.staged")
    stray = staging.of_epoch(7, 3)
    stray.mkdir()
    (staging.directory / "a file").touch()
    staging.sweep({7: 2, 9: 0})
    assert kept.exists()
    assert not ended.parent.parent.exists()
    assert not stray.exists()
    assert [path.name for path in staging.directory.iterdir()] == [f"{7:016x}"]


def test_sweeping_what_is_not_there_is_no_error(staging: Staging) -> None:
    staging.sweep({})
    staging.sweep_job(7)
    staging.sweep_chunk(7, 1, 0)


def test_a_chunk_waits_until_what_the_one_before_took_has_flowed_in() -> None:
    pace = Pace(1_000)
    assert pace.wait_ms(0) == 0
    pace.spend(500, 0)
    assert pace.wait_ms(100) == 400
    pace.spend(500, 100)
    assert (pace.wait_ms(100), pace.wait_ms(1_000)) == (900, 0)


def test_a_chunk_that_rested_on_its_way_does_not_wait_for_its_rests_again() -> None:
    pace = Pace(1_000)
    pace.spend(1_000, began_ms=0)  # published at 900
    assert pace.wait_ms(900) == 100


def test_pieces_of_a_chunk_rest_as_the_rate_says_and_no_longer_than_the_bound() -> None:
    pace = Pace(1_000_000)
    assert pace.rest_ms(piece_bytes=10_000, chunk_bytes=100_000) == 10
    assert pace.rest_ms(piece_bytes=10_000, chunk_bytes=10_000_000) == RESTED_MS_MAX / 1_000


def test_a_job_without_a_rate_never_waits() -> None:
    pace = Pace(0)
    assert not pace.is_limited
    pace.spend(1 << 40, 0)
    assert pace.wait_ms(0) == 0
