"""The longest step of a leader that shares out 10,000 streams, by shards and one by one.

Run by itself: ``python bench/share_steps.py``. The real machine, whose members say that they hold
what they are granted; each step is timed by the thread's own clock.
"""

import gc
from collections.abc import Iterator

from dss_sim.scale.step_costs import Group
from dssd.machines.leader.events import Instructed, ShareByShards
from dssd.machines.leader.slicing import Slicing

STREAMS = 10_000
NS_PER_MS = 1e6


def longest_ms() -> Iterator[tuple[str, float]]:
    """Of each case, once."""
    yield "the first three, without shards", joined_ms(Group(STREAMS), 0, 3)
    partitions = {1: STREAMS}
    group = Group(STREAMS, Slicing(STREAMS, partitions))
    yield "the first three members come", joined_ms(group, 0, 3)
    yield "one more member comes", joined_ms(group, 3, 4)
    halved = Slicing(STREAMS // 2, partitions)
    group.feed(Instructed(ShareByShards(1, halved), group.now_ms))
    yield "half as many shards", settled_ms(group, 4)


def joined_ms(group: Group, first: int, members: int) -> float:
    """The longest step while members come, and until each has its share."""
    group.costs()
    for member in range(first, members):
        group.join(member)
    return settled_ms(group, members)


def settled_ms(group: Group, members: int) -> float:
    """The longest step until each of so many members has its share."""
    group.settle()
    held = [len(member.streams) for member in group.leader.members.values()]
    assert (len(held), sum(held)) == (members, STREAMS), held
    return max(group.costs()) / NS_PER_MS


if __name__ == "__main__":
    gc.freeze()
    for case, took_ms in longest_ms():
        print(f"{took_ms:6.1f} ms  {case}")
