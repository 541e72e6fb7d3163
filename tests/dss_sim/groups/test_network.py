from contextlib import suppress
from functools import partial

from dss_sim.groups.network import Network
from dss_sim.groups.randomness import Randomness
from dss_sim.groups.schedule import Host, Schedule

MESSAGES = 200


class Link:
    """One direction between two hosts, and what came through it."""

    def __init__(self, **rates: float) -> None:
        self.schedule = Schedule()
        self.network = Network(self.schedule, Randomness(7, rates))
        self.source = Host(self.schedule, "a", rate=1_000_000, offset_ms=0)
        self.target = Host(self.schedule, "b", rate=1_000_000, offset_ms=0)
        self.came: list[int] = []

    def send_all(self) -> list[int]:
        for number in range(MESSAGES):
            self.network.send(self.source, self.target, partial(self.came.append, number))
        self.drain()
        return self.came

    def drain(self) -> None:
        with suppress(IndexError):
            while True:
                self.schedule.step()


def test_without_faults_every_message_comes_once() -> None:
    assert sorted(Link().send_all()) == list(range(MESSAGES))


def test_some_are_lost_some_come_twice_and_some_come_after_later_ones() -> None:
    assert 0 < len(Link(lose=0.3).send_all()) < MESSAGES
    assert len(Link(double=0.3).send_all()) > MESSAGES
    link = Link(late=0.3)
    came = link.send_all()
    assert sorted(came) == list(range(MESSAGES))
    assert link.schedule.now_us > 5_000


def test_a_partition_stops_one_direction_until_it_ends() -> None:
    link = Link()
    link.network.block(link.source, link.target, 1_000)
    link.network.send(link.target, link.source, lambda: link.came.append(1))
    link.network.send(link.source, link.target, lambda: link.came.append(2))
    link.drain()
    assert link.came == [1]
    link.network.heal()
    link.network.send(link.source, link.target, lambda: link.came.append(3))
    link.drain()
    assert link.came == [1, 3]
