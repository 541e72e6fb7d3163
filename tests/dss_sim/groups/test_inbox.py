"""Records in the world's client: what is neglected holds up nothing, and order is kept."""

from dss_sim.groups.inbox import Arrived, Held, Inbox


def held(number: int, group: str) -> Held:
    return Held(number, number, group, "t1/0/0", 1, 0, 0)


def arrived(grant: Held, offset: int) -> Arrived:
    return Arrived(grant, offset, 1, False, None)


def taken(inbox: Inbox) -> list[tuple[str, int]]:
    found = [inbox.take(lambda _: True) for _ in range(len(inbox))]
    return [(each.held.group, each.offset) for each in found if each is not None]


def test_what_is_neglected_stays_and_comes_in_order() -> None:
    inbox, mine, other = Inbox(), held(1, "a"), held(2, "b")
    inbox.add(arrived(mine, 0))
    inbox.add(arrived(other, 0))
    inbox.neglect("a")
    inbox.add(arrived(mine, 1))
    inbox.add(arrived(other, 1))
    assert taken(inbox) == [("b", 0), ("b", 1)]
    inbox.attend("a")
    inbox.add(arrived(mine, 2))
    assert taken(inbox) == [("a", 0), ("a", 1), ("a", 2)]


def test_what_was_revoked_or_left_goes_also_where_it_is_neglected() -> None:
    inbox, mine, other = Inbox(), held(1, "a"), held(2, "b")
    inbox.neglect("a")
    inbox.add(arrived(mine, 0))
    inbox.add(arrived(other, 0))
    mine.revoked = other.left = True
    inbox.drop_over()
    inbox.attend_all()
    assert taken(inbox) == []


def test_a_paused_subscription_holds_up_no_other_and_keeps_its_order() -> None:
    inbox, mine, other = Inbox(), held(1, "a"), held(2, "b")
    inbox.add(arrived(mine, 0))
    inbox.pause(1)
    inbox.add(arrived(other, 0))
    inbox.add(arrived(mine, 1))
    assert taken(inbox) == [("b", 0)]
    inbox.resume(1)
    assert taken(inbox) == [("a", 0), ("a", 1)]


def test_what_came_again_is_left_out_once_it_is_acknowledged_also_where_it_is_neglected() -> None:
    inbox, mine, other = Inbox(), held(1, "a"), held(2, "b")
    for grant in (mine, other):
        inbox.add(arrived(grant, 0))
        inbox.add(arrived(grant, 1))
    inbox.neglect("a")
    inbox.drop_acked(mine, 0)
    inbox.drop_acked(other, 1)
    inbox.attend("a")
    assert taken(inbox) == [("b", 0), ("a", 1)]
