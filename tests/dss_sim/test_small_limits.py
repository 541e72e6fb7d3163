"""Small limits: who has them, that they are all that is changed, and only meanwhile."""

import ast
from collections import Counter
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import dss_sim
import dssd
from dss_sim.groups.plan import plan_of
from dss_sim.groups.run import run
from dss_sim.groups.transcript import Transcript
from dss_sim.sessions.plan import plan_of as shells_plan_of
from dss_sim.small_limits import (
    MACHINES,
    SHELLS,
    Limit,
    SmallLimit,
    loses,
    made_small,
    small_limits,
)
from dssd.leaders import lag
from dssd.machines.delivery import stream
from dssd.machines.leader import commits

ROOTS = [Path(str(package.__file__)).parent for package in (dssd, dss_sim)]
SEEDS = 2_000


@cache
def users() -> dict[str, list[str]]:
    """The modules that look up each limit."""
    found: dict[str, list[str]] = {limit.name: [] for limit in (*MACHINES, *SHELLS)}
    for root in ROOTS:
        for path in root.rglob("*.py"):
            text = path.read_text()
            if any(name in text for name in found):
                module = ".".join(path.relative_to(root.parent).with_suffix("").parts)
                for name in names_looked_up(text) & found.keys():
                    found[name].append(module)
    return found


def names_looked_up(text: str) -> set[str]:
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)]
    return {node.id for node in nodes if isinstance(node.ctx, ast.Load)}


@pytest.mark.parametrize("limit", [*MACHINES, *SHELLS], ids=lambda limit: limit.name)
def test_every_module_that_looks_a_limit_up_has_the_small_value(limit: Limit) -> None:
    modules = [import_module(name) for name in users()[limit.name]]
    assert modules
    with made_small((SmallLimit(limit.name, limit.least),)):
        assert {vars(module)[limit.name] for module in modules} == {limit.least}
    assert {vars(module)[limit.name] for module in modules} != {limit.least}


def test_a_fifth_of_the_seeds_has_small_limits_and_every_limit_is_small_in_some() -> None:
    for plan, those in ((plan_of, MACHINES), (shells_plan_of, (*MACHINES, *SHELLS))):
        drawn = [small_limits(seed, those) for seed in range(SEEDS)]
        assert [plan(seed).limits for seed in range(50)] == drawn[:50]
        small = [limits for limits in drawn if limits]
        assert 0.2 * SEEDS < len(small) < 0.25 * SEEDS
    counted = Counter(each.name for limits in small for each in limits)
    assert counted.keys() == {limit.name for limit in (*MACHINES, *SHELLS)}


def test_values_lie_in_the_range_of_their_limit() -> None:
    ranges = {limit.name: range(limit.least, limit.most + 1) for limit in (*MACHINES, *SHELLS)}
    drawn = {each for seed in range(SEEDS) for each in small_limits(seed, (*MACHINES, *SHELLS))}
    assert all(each.value in ranges[each.name] for each in drawn)
    assert {each.value for each in drawn if each.name == "ACKED_RANGES_MAX"} == {1, 2, 3, 4, 5, 6}


def test_a_limit_is_drawn_without_regard_to_the_others() -> None:
    for seed in range(200):
        alone = [each for limit in MACHINES for each in small_limits(seed, (limit,))]
        assert tuple(alone) == small_limits(seed, MACHINES)


def values() -> tuple[int, int, int]:
    return (
        vars(stream)["ACKED_RANGES_MAX"],
        vars(lag)["ACKED_RANGES_MAX"],
        vars(commits)["COMMIT_STREAMS_MAX"],
    )


def test_modules_have_the_small_values_only_meanwhile() -> None:
    chosen = (SmallLimit("ACKED_RANGES_MAX", 2), SmallLimit("COMMIT_STREAMS_MAX", 1))
    before = values()
    with made_small(chosen):
        assert values() == (2, 2, 1)
    assert values() == before == (1_024, 1_024, 500)


def test_modules_have_their_own_values_again_after_a_run_that_failed() -> None:
    before = values()
    with pytest.raises(ZeroDivisionError), made_small((SmallLimit("ACKED_RANGES_MAX", 2),)):
        raise ZeroDivisionError
    assert values() == before


def test_full_mailboxes_are_told_apart_from_what_loses_nothing() -> None:
    assert loses((SmallLimit("PAGE_ROWS", 1), SmallLimit("LEADER_MAILBOX_MAX", 1)))
    assert not loses((SmallLimit("PAGE_ROWS", 1),))


def test_a_run_with_small_limits_says_so_and_goes_another_way() -> None:
    plan = replace(plan_of(3), limits=(SmallLimit("COMMIT_STREAMS_MAX", 1),))
    transcript = Transcript()
    small = run(plan, transcript.note)
    assert "SmallLimit(name=COMMIT_STREAMS_MAX, value=1)" in transcript.lines[0]
    assert small.violation is None
    assert small.history != run(replace(plan, limits=())).history
