"""A redrive in an ordered group: whole keys, whatever names them."""

import pytest

from dss_core.changes import Change, DiscardDeadLetters, RedriveDeadLetters
from dss_core.errors import KeysBeyondLook, PartOfKey
from dss_core.filters import SubscriptionFilter
from dss_core.lane import DEAD
from dss_core.progress import Ranges
from dssd.leaders.declarations import AskedRetries
from dssd.operations.kinds import dead_letters, queue_choice, whole_keys
from dssd.operations.plans import Plan
from support.operated_groups import ANA, Works
from support.queued_entries import Failed, append_entries

OTHER = 0x1230000000000001


def failed(offset: int, key: bytes | None, fingerprint: int = 0) -> Failed:
    """One that failed by itself has a fingerprint; the others follow."""
    cause = "refused" if fingerprint else "follows"
    return Failed(offset, "", "", fingerprint, key, attempt=int(bool(fingerprint)), cause=cause)


DEAD_LETTERS = (
    failed(0, b"ida", OTHER),
    failed(1, b"ida"),
    failed(2, b"leo", 1),
    failed(3, None, OTHER),
    failed(4, b"leo"),
    failed(5, b"ida"),
    failed(6, b"eva", OTHER),
)


async def blocked(works: Works, on_dead_letter: str = "block") -> None:
    plant = works.plant
    [stream] = await plant.topic("orders", 1)
    retries = AskedRetries(5, ordered=True, on_dead_letter=on_dead_letter)
    parsed = SubscriptionFilter.parse("$share/g/orders/#")
    group = await plant.groups.declare(parsed, retries=retries)
    await plant.catalogue.make_queues(group.group_id, plant.catalogue.get("orders"))
    queues = plant.catalogue.queues_of(group.group_id, stream)
    assert queues is not None
    await append_entries(plant, queues[DEAD - 1], DEAD_LETTERS)


async def planned(works: Works, change: Change) -> tuple[Plan, Ranges]:
    plan = await works.operations.plan(change)
    assert isinstance(plan.change, RedriveDeadLetters | DiscardDeadLetters)
    return plan, tuple(span for lane in plan.change.lanes for span in lane.ranges)


async def test_an_error_or_a_key_names_whole_keys_and_the_plan_counts_them(works: Works) -> None:
    await blocked(works)
    plan, ranges = await planned(works, RedriveDeadLetters("g", error="123"))
    assert ranges == ((0, 2), (3, 4), (5, 7))
    assert plan.summary == "redrive 5 dead letters in 1 stream of g@orders/#"
    assert "2 of them did not match, and come along with their keys." in plan.effects
    assert "They are all the dead letters of 2 keys." in plan.effects
    plan, ranges = await planned(works, RedriveDeadLetters("g", key=b"leo"))
    assert ranges == ((2, 3), (4, 5))
    assert plan.effects[-2] == "They are all the dead letters of 1 key."
    assert plan.effects[-1].startswith("Each key comes back whole, in order")
    assert not any("did not match" in each for each in plan.effects)
    assert (await planned(works, RedriveDeadLetters("g", stream="orders/0/0")))[1] == ((0, 7),)
    assert (await planned(works, RedriveDeadLetters("g", error="fff")))[1] == ()


async def test_one_record_of_a_blocked_key_is_refused_with_the_commands_that_work(
    works: Works,
) -> None:
    await blocked(works)
    for offset in (0, 5):
        with pytest.raises(PartOfKey, match="one of 3 dead letters with the key ida") as refused:
            await planned(works, RedriveDeadLetters("g", stream="orders/0/0", offset=offset))
        assert "dssctl dlq redrive 'g@orders/#' --key ida." in refused.value.hint_text
        assert f"orders/0/0@{offset} --unordered" in refused.value.hint_text
    for offset in (3, 6):  # one without a key, and all of a key
        change = RedriveDeadLetters("g", stream="orders/0/0", offset=offset)
        assert (await planned(works, change))[1] == ((offset, offset + 1),)
    one = RedriveDeadLetters("g", stream="orders/0/0", offset=0, unordered=True)
    plan, ranges = await planned(works, one)
    assert ranges == ((0, 1),)
    assert plan.effects[-1].endswith("named records behind it go back to the dead letters.")
    again, ranges = await planned(works, plan.change)
    assert (ranges, again.change) == (((0, 1),), plan.change)


async def test_what_is_given_up_is_what_is_named(works: Works) -> None:
    await blocked(works)
    plan, ranges = await planned(works, DiscardDeadLetters("g", error="123"))
    assert ranges == ((0, 1), (3, 4), (6, 7))
    assert plan.effects[-1].startswith("Other dead letters of their keys stay")


async def test_where_a_key_goes_on_without_its_dead_a_redrive_says_that_it_is_late(
    works: Works,
) -> None:
    await blocked(works, "skip")
    plan, ranges = await planned(works, RedriveDeadLetters("g", error="123"))
    assert ranges == ((0, 1), (3, 4), (6, 7))
    assert plan.effects[-1].startswith("They come out of order")


async def test_no_bound_cuts_a_key(works: Works, monkeypatch: pytest.MonkeyPatch) -> None:
    await blocked(works)
    change = RedriveDeadLetters("g", error="123")
    monkeypatch.setattr(dead_letters, "CHOICE_RANGES_MAX", 2)
    plan, ranges = await planned(works, change)
    assert ranges == ((0, 2), (5, 6))
    assert any("the same command does the rest" in each for each in plan.effects)
    monkeypatch.setattr(dead_letters, "CHOICE_RANGES_MAX", 1)
    with pytest.raises(KeysBeyondLook) as refused:
        await planned(works, change)
    assert "--origin orders/0/0" in refused.value.hint_text
    monkeypatch.setattr(dead_letters, "CHOICE_RANGES_MAX", 9)
    monkeypatch.setattr(whole_keys, "KEYS_CHOSEN_MAX", 1)
    plan, ranges = await planned(works, change)
    assert ranges == ((0, 2), (3, 4), (5, 6))
    assert any("the same command does the rest" in each for each in plan.effects)


async def test_a_stream_that_is_not_looked_through_is_refused_for_whole_keys_alone(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    await blocked(works)
    monkeypatch.setattr(queue_choice.ChoiceBudget.__init__, "__defaults__", (1,))
    with pytest.raises(KeysBeyondLook, match="more dead letters than a plan reads"):
        await planned(works, RedriveDeadLetters("g", error="123"))
    _, ranges = await planned(works, RedriveDeadLetters("g", error="123", unordered=True))
    assert ranges == ((0, 1), (3, 4), (6, 7))


async def test_a_canary_is_the_first_record_of_each_key_wherever_it_lies(works: Works) -> None:
    await blocked(works)
    row = await works.operations.apply(
        RedriveDeadLetters("g", canary=3), caller=ANA, reason="mended"
    )
    member = works.plant.member(works.plant.groups.find("g"), "ann")
    member.want()
    [granted] = await member.granted(1)
    redrive = granted.queues[DEAD - 1].redrive
    assert (redrive.operation, redrive.ranges) == (row.number, ((0, 1), (2, 4)))
