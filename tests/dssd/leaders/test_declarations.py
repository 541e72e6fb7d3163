"""What may be said of records that fail, and what a group makes of what is left open."""

from dataclasses import replace
from typing import Any

import pytest

from dss_core.errors import (
    GroupExists,
    GroupExistsOtherwise,
    IllegalArgument,
    OrderComesWithQueues,
)
from dss_core.filters import TopicFilter
from dss_core.limits import NAK_DELAY_MS_MAX
from dssd.leaders.declarations import (
    NOTHING_SAID,
    QUEUE_BYTES,
    QUEUE_BYTES_MAX,
    QUEUE_RECORDS,
    QUEUE_RECORDS_MAX,
    AskedRetries,
    GroupRequest,
    check_as_asked,
    edited_retries,
    policy_of,
)
from dssd.limits import BACKOFF_MS, BACKOFF_STEPS_MAX, MAX_DELIVER_MAX
from dssd.store.rows import GroupRow

PLAIN = GroupRow(7, "billing", "orders/#", "shared", "", None, 30_000, 0, 0)
LANED = replace(PLAIN, max_deliver=3, backoff_ms="10,20", queue_records=5, queue_bytes=6)
YEAR_MS = 365 * 86_400_000


def test_a_group_of_which_nothing_is_said_has_no_queues() -> None:
    assert NOTHING_SAID.of_new_group().columns() == {}


def test_what_is_left_open_is_the_usual() -> None:
    made = AskedRetries(max_deliver=5).of_new_group()
    assert made == AskedRetries(5, BACKOFF_MS, QUEUE_RECORDS, QUEUE_BYTES)
    assert made.columns()["backoff_ms"] == "1000,5000,30000,300000"


def test_the_greatest_of_everything_is_taken() -> None:
    AskedRetries(
        MAX_DELIVER_MAX,
        (0,) * (BACKOFF_STEPS_MAX - 1) + (NAK_DELAY_MS_MAX,),
        QUEUE_RECORDS_MAX,
        QUEUE_BYTES_MAX,
    ).of_new_group()


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (AskedRetries(0), "max_deliver 0 is not allowed: 1 to 1,000; leave it out for a group"),
        (AskedRetries(MAX_DELIVER_MAX + 1), "max_deliver 1001 is not allowed: 1 to 1,000"),
        (AskedRetries(3, (1, YEAR_MS)), "backoff of 365d is not allowed: each step is at most 1d"),
        (AskedRetries(3, (0,) * (BACKOFF_STEPS_MAX + 1)), "backoff of 17 steps is not allowed"),
        (AskedRetries(3, queue_records=0), "queue_records 0 is not allowed: 1 to 10,000,000."),
        (AskedRetries(3, queue_bytes=QUEUE_BYTES_MAX + 1), "queue_bytes 1099511627777 is not"),
        (AskedRetries(backoff_ms=(1,)), "backoff_ms without max_deliver is not allowed"),
        (AskedRetries(queue_bytes=1), "queue_bytes without max_deliver is not allowed"),
        (AskedRetries(ordered=True), "ordered without max_deliver is not allowed"),
        (AskedRetries(on_dead_letter="block"), "on_dead_letter without max_deliver is not"),
        (AskedRetries(3, on_dead_letter="block"), "on_dead_letter block without ordered is not"),
        (AskedRetries(3, keyless="dead"), "keyless dead without ordered is not allowed"),
        (AskedRetries(3, ordered=True, on_dead_letter="wait"), "on_dead_letter wait is not"),
        (AskedRetries(3, ordered=True, keyless="block"), "keyless block is not allowed: deliver"),
    ],
)
def test_what_no_group_can_have_is_refused_with_a_sentence(
    asked: AskedRetries, sentence: str
) -> None:
    with pytest.raises(IllegalArgument) as refused:
        asked.of_new_group()
    assert str(refused.value).startswith(sentence)


@pytest.mark.parametrize(
    ("asked", "differs"),
    [
        (NOTHING_SAID, False),
        (AskedRetries(3, (10, 20)), False),
        (AskedRetries(4), True),
        (AskedRetries(3, (10,)), True),
        (AskedRetries(queue_records=4), True),
        (AskedRetries(ordered=True), True),
        (AskedRetries(ordered=False, on_dead_letter="skip"), False),
    ],
)
def test_a_group_is_what_is_said_of_it(asked: AskedRetries, differs: bool) -> None:
    with pytest.raises(GroupExists) as refused:
        check_as_asked(LANED, wanted(retries=asked), accepted=False)
    assert isinstance(refused.value, GroupExistsOtherwise) == differs
    if not differs:
        check_as_asked(LANED, wanted(retries=asked), accepted=True)


def wanted(**settings: Any) -> GroupRequest:  # noqa: ANN401 - as of the class
    return GroupRequest("g", TopicFilter.parse("t/#"), "shared", None, None, **settings)


@pytest.mark.parametrize(
    ("settings", "told", "advised"),
    [
        (
            {"retries": AskedRetries(4, (1_500, 60_000), queue_bytes=4096, ordered=True)},
            (
                "--max-deliver 4 was asked for, and it has 3; --backoff 1500ms,60s was asked for, "
                "and it has 10ms,20ms; --queue-bytes 4096B was asked for, and it has none; "
                "--ordered was asked for, and it has no order"
            ),
            "--max-deliver 4 --backoff 1500ms,60s --queue-bytes 4096B --ordered; or leave",
        ),
        ({"on_damage": "stall"}, "--on-damage stall", "--on-damage stall; or leave that out"),
        ({"protocol": "lease"}, "--protocol lease", "No edit makes it so: leave that out"),
    ],
)
def test_a_group_that_is_another_is_refused_with_what_differs_and_the_edit_that_makes_it_so(
    settings: dict[str, Any], told: str, advised: str
) -> None:
    group = replace(LANED, queue_bytes=0)
    with pytest.raises(GroupExistsOtherwise) as refused:
        check_as_asked(group, wanted(**settings), accepted=True)
    assert told in refused.value.message
    assert advised in refused.value.hint_text


def test_an_edit_may_change_how_often_and_how_late() -> None:
    said = {"max_deliver": 9, "backoff_ms": "0", "queue_records": 1}
    assert edited_retries(LANED, said) == said
    assert edited_retries(PLAIN, {"ack_wait_ms": 1}) == {"ack_wait_ms": 1}


def test_a_group_that_gets_queues_gets_all_that_belongs_to_them_and_loses_it_with_them() -> None:
    got = edited_retries(PLAIN, {"max_deliver": 3, "queue_bytes": 7, "ack_wait_ms": 1})
    made = AskedRetries(3, queue_bytes=7).of_new_group().columns()
    assert got == {**made, "ack_wait_ms": 1}
    lost = edited_retries(replace(PLAIN, **got), {"max_deliver": 0})
    assert replace(PLAIN, **lost) == PLAIN


ORDERED = replace(LANED, ordered=True, on_dead_letter="block")


def test_an_ordered_group_blocks_and_delivers_where_nothing_else_is_said() -> None:
    made = AskedRetries(3, ordered=True).of_new_group()
    assert (made.ordered, made.on_dead_letter, made.keyless) == (True, "block", "deliver")
    group = replace(PLAIN, **{**made.columns(), "keyless": "dead"})
    policy = policy_of(group)
    assert policy is not None
    assert (policy.ordered, policy.blocks, policy.keyless_dead) == (True, True, True)
    skips = policy_of(replace(group, on_dead_letter="skip", keyless="deliver"))
    assert skips is not None
    assert (skips.ordered, skips.blocks, skips.keyless_dead) == (True, False, False)


def test_order_comes_and_goes_with_the_queues() -> None:
    got = edited_retries(PLAIN, {"max_deliver": 3, "ordered": True, "keyless": "dead"})
    assert got == AskedRetries(3, ordered=True, keyless="dead").of_new_group().columns()
    lost = edited_retries(replace(PLAIN, **got), {"max_deliver": 0})
    assert replace(PLAIN, **lost) == PLAIN
    assert edited_retries(PLAIN, {"ordered": False}) == {"ordered": False}
    assert edited_retries(ORDERED, {"keyless": "dead"}) == {"keyless": "dead"}
    for group, ordered in ((LANED, True), (ORDERED, False)):
        with pytest.raises(OrderComesWithQueues) as refused:
            edited_retries(group, {"ordered": ordered, "max_deliver": 7})
        wanted = " --ordered" if ordered else ""
        assert refused.value.hint_text.endswith(f"'billing@orders/#' --max-deliver 7{wanted}")


@pytest.mark.parametrize(
    ("group", "said", "sentence"),
    [
        (LANED, {"max_deliver": MAX_DELIVER_MAX + 1}, "1 to 1,000"),
        (LANED, {"max_deliver": 0, "queue_bytes": 3}, "a group without queues has none of it"),
        (PLAIN, {"queue_bytes": 3}, "give both"),
        (PLAIN, {"ordered": True}, "give both"),
        (LANED, {"on_dead_letter": "block"}, "give --ordered as well"),
        (LANED, {"keyless": "dead"}, "give --ordered as well"),
        (ORDERED, {"keyless": "alive"}, "deliver or dead"),
        (replace(PLAIN, kind="exclusive"), {"max_deliver": 3}, "ends with its session"),
    ],
)
def test_an_edit_keeps_to_the_bounds_of_a_declaration(
    group: GroupRow, said: dict[str, object], sentence: str
) -> None:
    with pytest.raises(IllegalArgument, match=sentence):
        edited_retries(group, said)
