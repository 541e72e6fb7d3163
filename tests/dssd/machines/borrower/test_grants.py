"""What becomes of grants, under whichever protocol they come."""

from dataclasses import replace

import pytest

from dss_core.progress import Progress
from dssd.machines.borrower import grants
from dssd.machines.borrower.events import (
    DropStream,
    InstallStream,
    ProgressDurable,
    Reported,
    RevokeStream,
)
from dssd.machines.borrower.state import Borrower, Effects, Holder, LeaseBorrower
from dssd.machines.messages import ProgressSaved, Revoked, RevokeFinished
from dssd.machines.queues import QueueState
from support.played_borrower import LEASE_MS, ME, SESSION, A, B, C, bare, granted, report

FINISHED = RevokeFinished(ME, 0, A, 2)


@pytest.fixture(params=[Borrower, LeaseBorrower])
def holder(request: pytest.FixtureRequest) -> Holder:
    """It holds A under epoch 2."""
    kind: type[Borrower | LeaseBorrower] = request.param
    borrower = kind(ME, SESSION, "ann", LEASE_MS)
    grants.install(borrower, granted(), [])
    return borrower


@pytest.mark.parametrize(("epoch", "new"), [(1, False), (2, False), (3, True)])
def test_a_grant_is_new_above_the_one_that_is_held_and_above_the_last_that_ended(
    holder: Holder, epoch: int, new: bool
) -> None:
    assert grants.is_new(holder, granted(epoch=epoch)) == new
    grants.drop(holder, A, "revoked", [])
    assert grants.is_new(holder, granted(epoch=epoch)) == new
    assert grants.is_new(holder, granted(B, epoch=1))


def test_a_newer_grant_replaces_the_one_that_is_held(holder: Holder) -> None:
    effects: Effects = []
    grants.install(holder, granted(epoch=3, floor=20), effects)
    assert effects == [
        DropStream(A, 2, "granted anew"),
        InstallStream(granted(epoch=3, floor=20)),
    ]
    assert holder.streams[A].report == report(epoch=3, floor=20)


def test_only_a_grant_that_has_ended_is_said_not_to_be_held(holder: Holder) -> None:
    effects: Effects = []
    grants.answer_if_over(holder, granted(), effects)
    grants.drop(holder, A, "revoked", [])
    grants.answer_if_over(holder, granted(epoch=3), effects)
    assert effects == []
    grants.answer_if_over(holder, granted(), effects)
    assert bare(effects) == [FINISHED]


def test_what_is_taken_back_before_it_came_never_comes(holder: Holder) -> None:
    effects: Effects = []
    grants.release(holder, B, 4, effects)
    assert bare(effects) == [RevokeFinished(ME, 0, B, 4)]
    assert not grants.is_new(holder, granted(B, epoch=4))


def test_taking_back_an_older_grant_leaves_the_present_one(holder: Holder) -> None:
    effects: Effects = []
    grants.revoked(holder, Revoked(ME, 0, A, 1, Progress(9)), 0, effects)
    assert bare(effects) == [RevokeFinished(ME, 0, A, 1)]
    assert grants.held_under(holder, A, 2) is not None


def test_a_stream_is_told_to_finish_once(holder: Holder) -> None:
    effects: Effects = []
    for deadline_ms in (800, 700):
        grants.finish(holder.streams[A], deadline_ms, effects)
    assert effects == [RevokeStream(A, 2, 800)]


def test_a_report_is_due_again_after_twice_the_time_up_to_a_quarter_of_the_lease(
    holder: Holder,
) -> None:
    held = grants.take_report(holder, report(floor=20), Reported((), 0))
    assert held is holder.streams[A]
    due_ms = [holder.timers.at_ms(A)]
    for _ in range(4):
        grants.take_resend(holder, A, 0)
        due_ms.append(holder.timers.at_ms(A))
    assert due_ms == [250, 500, 1_000, 1_500, 1_500]
    grants.take_report(holder, report(floor=21), Reported((), 0))
    assert holder.timers.at_ms(A) == 250


def test_a_report_under_another_grant_is_not_taken(holder: Holder) -> None:
    assert grants.take_report(holder, report(epoch=1, floor=20), Reported((), 0)) is None
    assert holder.streams[A].report == report()


@pytest.mark.parametrize(
    ("floor", "final", "again"), [(20, False, False), (19, False, True), (20, True, True)]
)
def test_a_report_is_sent_until_it_is_durable_and_a_final_one_until_the_grant_is_over(
    holder: Holder, floor: int, final: bool, again: bool
) -> None:
    grants.take_report(holder, report(floor=20), Reported((), 0, final=final))
    effects: Effects = []
    grants.note_saved(holder, ProgressSaved(ME, 0, A, 2, Progress(floor)), 10, effects)
    assert effects == [ProgressDurable(A, 2, Progress(floor))]
    assert (holder.timers.at_ms(A) is not None) == again


@pytest.mark.parametrize(("acked", "again"), [(1, False), (0, True)])
def test_a_report_of_queues_is_sent_until_they_are_durable_too(
    holder: Holder, acked: int, again: bool
) -> None:
    queues = (QueueState(B, Progress(1), 1), QueueState(C))
    grants.take_report(holder, replace(report(), queues=queues), Reported((), 0))
    saved = (QueueState(B, Progress(acked), 1), QueueState(C))
    effects: Effects = []
    grants.note_saved(holder, ProgressSaved(ME, 0, A, 2, Progress(10), saved), 10, effects)
    assert effects == [ProgressDurable(A, 2, Progress(10), saved)]
    assert (holder.timers.at_ms(A) is not None) == again


def test_a_grant_that_is_given_back_unused_has_the_queues_that_it_came_with() -> None:
    queues = (QueueState(B, Progress(1), 1), QueueState(C))
    assert grants.unused_report(replace(granted(), queues=queues)).queues == queues
