"""What is shown of groups is bounded, however many there are, and a look breaks nothing."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from dssd.machines.fate import Counts
from dssd.metrics.collection import GROUPS_LABELLED_MAX, OTHERS, put_disk, put_groups
from dssd.metrics.readings import Readings
from dssd.questions.overviews import Overview
from dssd.questions.rates import Rates
from dssd.store.rows import GroupRow

NOW_US = 1_000_000_000


def group(number: int, state: str = "active", oldest_us: int | None = None) -> Overview:
    row = GroupRow(number, f"g{number}", "orders/#", "shared", "now", None, 30_000, 0, 0)
    rates = Rates(number, 0)
    counts = Counts(acked=number, damaged=1)
    return Overview(row, state, "", 1, 2, 0, 4, number, True, oldest_us, counts, rates, rates, None)


async def shown(overviews: list[Overview]) -> dict[tuple[str, str], float]:
    readings = Readings()
    await put_groups(readings, overviews, NOW_US)
    return dict(values(readings))


def values(readings: Readings) -> Iterator[tuple[tuple[str, str], float]]:
    for family in readings.families():
        for sample in family.samples:
            yield (sample.name, next(iter(sample.labels.values()))), sample.value


async def test_a_group_has_its_own_series() -> None:
    found = await shown([group(3, "stalled", NOW_US - 5_000_000)])
    assert found["dss_group_lag_records", "g3"] == 3
    assert found["dss_group_lag_seconds", "g3"] == 5
    assert found["dss_group_stalled", "g3"] == found["dss_group_problem", "g3"] == 1
    assert found["dss_group_members", "g3"] == 2
    assert found["dss_group_ack_rate", "g3"] == 3
    assert found["dss_groups", "stalled"] == 1
    assert found["dss_groups", "paused"] == 0
    assert found["dss_groups_done_records", "damaged"] == 1
    assert ("dss_group_lag_records", OTHERS) not in found


async def test_groups_beyond_the_bound_are_summed() -> None:
    most = GROUPS_LABELLED_MAX
    found = await shown([group(number) for number in range(most + 3)])
    labelled = {name for metric, name in found if metric == "dss_group_lag_records"}
    assert len(labelled) == most + 1
    assert found["dss_group_lag_records", f"g{most + 2}"] == most + 2
    assert found["dss_group_lag_records", OTHERS] == 0 + 1 + 2
    assert found["dss_group_members", OTHERS] == 6
    assert found["dss_groups", "active"] == most + 3


async def test_a_data_directory_that_is_gone_costs_its_values_only(tmp_path: Path) -> None:
    readings = Readings()
    await put_disk(readings, tmp_path)
    assert {family.name for family in readings.families()} == {
        "dss_disk_free_bytes",
        "dss_disk_size_bytes",
    }
    without = Readings()
    await put_disk(without, tmp_path / "gone")
    assert list(without.families()) == []


async def test_groups_with_dead_letters_have_their_own_series_without_any_lag() -> None:
    most = GROUPS_LABELLED_MAX
    failed = replace(group(0), group=replace(group(0).group, name="failed"), dead=9_000, retrying=2)
    found = await shown([failed, *(group(number) for number in range(1, most + 3))])
    assert found["dss_group_dead", "failed"] == 9_000
    assert found["dss_group_retrying", "failed"] == 2
    assert found["dss_group_dead", OTHERS] == 0
