"""The picture: what each item makes of it."""

from dataclasses import replace

import pytest

from dss_client import WatchKey, WatchUpdate
from dssctl.top.limits import SAMPLE_TICKS, TREND_SAMPLES
from dssctl.top.model.picture import (
    EVENTS_KEPT,
    Happened,
    Lost,
    Picture,
    Stood,
    Ticked,
    Updated,
    step,
)
from dssctl.top.model.trends import direction
from support.dashboard_items import (
    ORDERS,
    PAYMENTS,
    after,
    busy,
    event,
    grant,
    group,
    lag,
    member,
    session,
    status,
    update,
)


def test_what_is_told_is_known_by_its_name() -> None:
    told = update(
        group("g"), member("g@orders/#", "c"), grant("g@orders/#", "orders/0/1"), session("c")
    )
    items = after([told]).items
    assert items.groups["g@orders/#"].name == "g"
    assert [each.client_id for each in items.members["g@orders/#"].values()] == ["c"]
    assert list(items.grants["g@orders/#"]) == ["orders/0/1"]
    assert list(items.sessions) == ["c"]


def test_what_the_picture_has_no_place_for_is_passed_over() -> None:
    picture = after([update(group("g"))])
    keys = (WatchKey("schedules", "", "nightly"), WatchKey("of-tomorrow", "", "x"))
    told = WatchUpdate(False, tuple((key, session("c")) for key in keys), keys, complete=True)
    assert step(picture, Updated(told)).items == picture.items


def test_a_step_leaves_the_picture_before_it_as_it_was() -> None:
    first = after([update(group("g"), lag("g@orders/#", "orders/0/0", 1))])
    second = after([update(group("h"), lag("g@orders/#", "orders/0/0", 2))], first)
    assert list(first.items.groups) == ["g@orders/#"]
    assert first.items.lags["g@orders/#"]["orders/0/0"].lag == 1
    assert second.items.lags["g@orders/#"]["orders/0/0"].lag == 2


def test_what_was_removed_is_gone_and_leaves_no_empty_group_behind() -> None:
    picture = after([update(group("g"), grant("g@orders/#", "orders/0/1"))])
    gone = (WatchKey("groups", "g@orders/#", ""), WatchKey("grants", "g@orders/#", "orders/0/1"))
    picture = step(picture, Updated(WatchUpdate(False, (), gone, complete=True)))
    assert (picture.items.groups, picture.items.grants) == ({}, {})


def test_what_is_told_anew_shows_once_it_is_told_to_its_end() -> None:
    picture = after([update(group("old"), anew=True)])
    picture = step(picture, update(group("new"), anew=True, complete=False))
    assert list(picture.items.groups) == ["old@orders/#"]
    picture = step(picture, update(group("newer"), complete=True))
    assert list(picture.items.groups) == ["new@orders/#", "newer@orders/#"]


def test_a_picture_is_complete_once_the_watch_told_all() -> None:
    picture = after([update(group("g"), anew=True, complete=False)])
    assert not picture.complete
    assert step(picture, update()).complete


def test_a_daemon_that_is_away_leaves_the_last_picture_and_says_since_when() -> None:
    picture = after([update(group("g"), anew=True), Lost(5_000, "gone"), Lost(9_000, "still gone")])
    assert picture.away is not None
    assert (picture.away.since_ms, picture.away.reason) == (5_000, "still gone")
    assert list(picture.items.groups) == ["g@orders/#"]
    assert step(picture, Stood(status())).away is None


def test_events_are_kept_once_each_in_order_and_not_without_end() -> None:
    late = [event(number, "later") for number in range(3, EVENTS_KEPT + 10)]
    picture = after([update(*late), Happened((event(2, "before"), event(3, "later")))])
    numbers = [each.number for each in picture.events]
    assert numbers == list(range(10, EVENTS_KEPT + 10))


def test_a_trend_is_sampled_at_its_pace_and_bounded() -> None:
    picture = after([update(group("g", lag=3), anew=True)])
    ticks = SAMPLE_TICKS * (TREND_SAMPLES + 5)
    picture = after([Ticked(tick * 1_000) for tick in range(ticks)], picture)
    assert len(picture.trends["g@orders/#"]) == len(picture.total) == TREND_SAMPLES
    assert picture.total[-1].lag == 3


def test_nothing_is_sampled_before_all_is_known_or_while_the_daemon_is_away() -> None:
    ticks = [Ticked(tick * 1_000) for tick in range(10)]
    assert after(ticks).total == ()
    assert after([update(anew=True), Lost(0, ""), *ticks]).total == ()


def test_the_trend_of_a_group_that_went_is_dropped() -> None:
    picture = after([update(group("g"), group("h"), anew=True), Ticked(0), Ticked(1)])
    gone = WatchUpdate(False, (), (WatchKey("groups", "g@orders/#", ""),), complete=True)
    picture = after([Updated(gone), Ticked(2), Ticked(3)], picture)
    assert list(picture.trends) == ["h@orders/#"]


def test_the_sum_of_all_groups_is_sampled_too() -> None:
    picture = after(busy())
    last = picture.total[-1]
    assert last.lag == sum(trend[-1].lag for trend in picture.trends.values())
    assert direction(picture.trends[PAYMENTS]) == 1
    assert direction(picture.trends[ORDERS]) == -1
    assert direction(picture.trends["search-feed@orders/#"]) == 0


@pytest.mark.parametrize("told", [update(), Lost(1, ""), Ticked(1), Happened(()), Stood(status())])
def test_every_item_can_be_told_to_an_empty_picture(told: Updated) -> None:
    assert isinstance(step(replace(Picture()), told), Picture)
