"""A script in which the answer to a request for the leader arrives long after it was given.

The leader stands still until its borrowers are suspended and ask for it, and ping once more. Then
it answers all of that at once, but now the sessions stand still, and hear it a while later: first
the answer to the request, then the one to that ping, with which they go on. What they say from
then on is lost for a while. So the leader counts their leases from when it answered, and each of
them must count its own from the ping, never from when it heard the answer to the request.

Invariant: all clocks run at one rate, and all members ping within 40 ms of each other. So the
script meets its moment, whatever the members, their habits and the records are.
"""

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dss_sim.groups.plan import Plan

LATE_ANSWER_SHARE = 1 / 20
"""The share of runs that are this script."""
Line = tuple[int, str, int, int]
"""Time in µs, kind, who and amount of a `Timed`."""

MS = 1_000
LEASE_MS = 2_000
"""Borrowers ping every 500 ms, and look for their leader every second while they are suspended."""

# In ms. Whoever begins at n pings at n + 500 and so on. The ping at n + 1000 is the last that is
# answered in time, so borrowers are suspended at n + 2200 and lost at n + 3000.
BEGINS_BEFORE = 20
LEADER_STOPS = 1_200
SESSIONS_STOP = 2_600
"""The time after the ping that follows the request for the leader."""
LOST_FROM = 2_610
LEADER_GOES_ON = 2_630
SESSIONS_GO_ON = 2_920
LOST_UNTIL = 3_440
"""The time before a ping that reaches the leader in time."""
ENDS = 5_000

TO_LEADER = 5
"""The `Timed.who` of a partition in which only messages from sessions to leaders are lost."""
APPEND_EVERY_MS = 20
"""How often all borrowers are looked at while their messages are lost."""


def with_late_answers(plan: "Plan", chance: Random) -> "tuple[Plan, list[Line]]":
    """The world of this script, made from that of another plan, and its events."""
    members = chance.randint(1, 3)
    group = replace(plan.groups[0], topic=0, private=False, protocol="borrow")
    world = replace(
        plan,
        partitions=(chance.randint(members, 4),),
        groups=(group,),
        habits=tuple(chance.choice(plan.habits) for _ in range(members)),
        session_hosts=1,
        clocks=tuple((1_000_000, chance.randint(0, 1_000_000)) for _ in range(2 + members)),
        rates={},
        heal_us=ENDS * MS,
        timing=replace(plan.timing, lease_ms=LEASE_MS),
        producers=1,
        os_topics=plan.os_topics & {0},
    )
    return world, [*_faults(), *_load(members, chance)]


def _faults() -> list[Line]:
    spans = (
        ("freeze_leader_host", 0, LEADER_STOPS, LEADER_GOES_ON),
        ("freeze_session_host", 0, SESSIONS_STOP, SESSIONS_GO_ON),
        ("partition", TO_LEADER, LOST_FROM, LOST_UNTIL),
    )
    return [
        (begins_ms * MS, kind, who, (ends_ms - begins_ms) * MS)
        for kind, who, begins_ms, ends_ms in spans
    ]


def _load(members: int, chance: Random) -> list[Line]:
    begins = [(chance.randrange(BEGINS_BEFORE * MS), "begin", who, 0) for who in range(members)]
    appends = [
        (at_ms * MS, "append", chance.randrange(1 << 16), chance.randint(1, 3))
        for at_ms in range(0, LOST_UNTIL, APPEND_EVERY_MS)
    ]
    return begins + appends
