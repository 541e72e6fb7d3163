"""No page calls well what the daemon finds to be wrong."""

from dss_client import Verdict
from dssctl.pages.session_page import SessionLook, session_verdict
from dssctl.pages.topic_page import TopicLook, topic_verdict
from support.dashboard_items import group, session, topic

NOW_US = 1_795_320_403_000_000
FINE = Verdict("healthy", "groups.behind", "all is well", ())
NEAR = Verdict("attention", "groups.retention", "Soon it goes.", ())
STUCK = Verdict("problem", "groups.stuck", "The record at 2 failed 6 times.", ("dssctl x",))


def test_a_topic_tells_the_worst_that_the_daemon_finds_of_it() -> None:
    look = (topic("orders", 4).topic, (group("orders-index"),), (), ())
    verdict = topic_verdict(TopicLook(*look, (FINE, NEAR, STUCK)))
    assert (verdict.health, verdict.sentence, verdict.next) == (
        "problem",
        STUCK.sentence,
        ("dssctl x",),
    )
    assert topic_verdict(TopicLook(*look, (FINE, NEAR))).sentence == "Soon it goes."
    assert topic_verdict(TopicLook(*look, (FINE,))).health == "healthy"


def test_a_session_tells_the_worst_that_the_daemon_finds_of_it() -> None:
    verdict = session_verdict(SessionLook(session("c"), (), (), (), (STUCK,)), NOW_US)
    assert (verdict.health, verdict.sentence) == ("problem", STUCK.sentence)
    assert session_verdict(SessionLook(session("c"), (), (), ()), NOW_US).health == "healthy"
