"""No page calls well what does not move."""

from dss_client import Reason, Stuck
from dssctl.pages.session_page import SessionLook, session_verdict
from dssctl.pages.topic_page import TopicLook, topic_verdict
from support.dashboard_items import ORDERS, group, session, status, topic

NOW_US = 1_795_320_403_000_000
FAILS = Reason("failing", "The record at 2 failed 6 times.", "dssctl x", "c", None, 2, 0, None)
STUCK = (Stuck(ORDERS, "orders/0/3", FAILS, 22, 4_000),)
TOLD = f"{ORDERS} orders/0/3: The record at 2 failed 6 times."


def test_a_topic_says_which_group_does_not_move_in_which_stream() -> None:
    look = TopicLook(topic("orders", 4).topic, (group("orders-index"),), status(), (), (), STUCK)
    verdict = topic_verdict(look, NOW_US)
    assert (verdict.health, verdict.sentence, verdict.next) == ("problem", TOLD, ("dssctl x",))
    well = TopicLook(topic("orders", 4).topic, (group("orders-index"),), status(), (), ())
    assert topic_verdict(well, NOW_US).health == "healthy"


def test_a_session_says_which_of_its_streams_does_not_move() -> None:
    verdict = session_verdict(SessionLook(session("c"), (), (), (), STUCK), NOW_US)
    assert (verdict.health, verdict.sentence) == ("problem", TOLD)
    assert session_verdict(SessionLook(session("c"), (), (), ()), NOW_US).health == "healthy"
