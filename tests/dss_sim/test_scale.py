"""The large world, made small."""

from collections import Counter
from dataclasses import replace

import pytest

from dss_sim.groups import leader_times
from dss_sim.groups.run import run_seed
from dss_sim.scale.__main__ import main
from dss_sim.scale.life import FAULTS, FAULTS_COUNT, Figures, lived
from dss_sim.scale.report import costs_table, figures_table
from dss_sim.scale.step_costs import REBALANCE, Cost, Costs, Group, measured
from dss_sim.scale.world import SUBSCRIPTIONS, LargeWorld, plan_of
from dssd.machines import deadlines
from dssd.machines.leader import machine, members, rebalance, stream_acts
from support.proof_share import only_in_proof, share

FACTOR = share(0.02, 0.03)
MINUTES = share(1.5, 3.0)


@pytest.fixture(scope="module")
def figures() -> Figures:
    return lived(plan_of(FACTOR, 1, MINUTES), 30, lambda now_us: None)


def test_at_full_size_there_are_ten_thousand_borrowers_in_a_thousand_groups() -> None:
    plan = plan_of(1.0, 1, 10.0)
    assert sum(plan.partitions) == 4_096
    assert len(plan.groups) == 1_000
    assert SUBSCRIPTIONS * len(plan.habits) == 10_000
    assert sum(FAULTS.values()) == FAULTS_COUNT == 1_000


def test_each_group_is_wanted_by_as_many_clients_and_by_none_twice() -> None:
    world = LargeWorld(plan_of(FACTOR, 1, MINUTES))
    wanting = Counter(name for client in world.clients for name in client.wanted.values())
    assert set(wanting) == set(world.groups)
    assert sum(wanting.values()) == SUBSCRIPTIONS * len(world.clients)
    assert {name: len(clients) for name, clients in world.members.items()} == wanting


def test_it_settles_before_and_after_the_faults(figures: Figures) -> None:
    assert figures.struck > 0
    assert figures.settled_first_ms is not None
    assert figures.settled_again_ms is not None
    assert figures.backlog_max > figures.backlog_end


def test_a_join_or_leave_moves_no_more_than_a_share(figures: Figures) -> None:
    assert figures.changes
    assert any(change.moves for change in figures.changes)
    for change in figures.changes:
        assert change.moves <= change.share


def test_in_the_steady_part_a_borrower_pings_each_quarter_of_its_lease(figures: Figures) -> None:
    expected = figures.borrowers * figures.steady_s / 1.5
    assert figures.steady["Ping"] == pytest.approx(expected, rel=0.02)
    assert figures.steady["PingResponse"] == pytest.approx(expected, rel=0.02)
    assert not figures.steady["LeaderWanted"] + figures.steady["Grant"] + figures.steady["Revoke"]


@pytest.fixture
def portions_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of a few streams are led as those of many thousands are."""
    monkeypatch.setattr(rebalance, "MOVES_A_STEP_MAX", 1)
    monkeypatch.setattr(members, "MOVES_A_STEP_MAX", 1)
    monkeypatch.setattr(machine, "TIMERS_A_STEP_MAX", 1)
    monkeypatch.setattr(deadlines, "STALE_A_CALL_MAX", 1)
    monkeypatch.setattr(stream_acts, "STREAMS_A_REBALANCE_MS", 1)
    monkeypatch.setattr(leader_times, "STREAMS_A_REBALANCE_MS", 1)


@pytest.mark.usefixtures("portions_of_one")
def test_every_invariant_holds_where_a_step_moves_one_stream() -> None:
    for seed in range(share(5, 100)):
        assert run_seed(seed).violation is None, seed


def test_a_seed_gives_the_same_figures_each_time() -> None:
    first, second = (lived(plan_of(0.005, 7, 1.0), 5, lambda now_us: None) for _ in range(2))
    assert replace(first, cpu_s=0.0) == replace(second, cpu_s=0.0)


def test_a_group_is_led_to_where_every_member_holds_its_share() -> None:
    group = Group(64)
    for member in range(16):
        group.join(member)
    group.settle()
    assert {len(member.streams) for member in group.leader.members.values()} == {4}


@only_in_proof
def test_each_kind_of_step_is_measured_each_round() -> None:
    costs = measured(8, 2, 3)
    assert all(0 < cost.median_us <= cost.max_us for cost in costs.steps.values())
    assert costs.rebalance_ns_per_s_log_s == pytest.approx(
        costs.steps[REBALANCE].median_us * 1_000 / (8 * 3)
    )


def test_tables_say_what_was_not_reached_and_what_is_too_much() -> None:
    plan = plan_of(0.01, 1, 1.0)
    assert "shared out again after the last fault | not within the time |" in figures_table(
        plan, Figures(lent_streams=1, steady_s=1.0)
    )
    costs = Costs(1_024, 2, {REBALANCE: Cost(1_024.0, 5_000.0)})
    assert costs_table([costs]).splitlines()[-1] == "| 1,024 | 2 | 1,024 / 5,000 | 100 |"


def test_the_command_prints_both_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--factor", "0.005", "--minutes", "0.5", "--rounds", "1"]) == 0
    printed = capsys.readouterr().out
    assert "| faults at a time of their own; of single messages and commits | 5; " in printed
    assert printed.count("\n|--:|--:|") == 1
