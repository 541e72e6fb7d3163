"""Seventy-one scripted runs in which a crash is tried after every effect, not sampled.

A scenario has no random faults: its script has the acts of members and operators, its network is
sound. `crash_points` runs it once to count its effects; each of them is then a place to die, for
the host that carried it out and for the whole daemon.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dss_sim.groups.client import Habits
from dss_sim.groups.cursor_operator import KINDS as OPERATIONS
from dss_sim.groups.plan import CrashPoint, GroupPlan, Plan, Timed
from dss_sim.groups.queue_plans import WHOLE
from dss_sim.groups.run import run
from dssd.machines.queues import RetryPolicy

MS = 1_000
PROMPT = Habits()
SLOW = Habits(later=1.0)
REFUSES = Habits(refuse=0.3)
REJECTS = Habits(refuse=0.4, reject=0.5)
SITS = Habits(sit=0.3)
HEAL_AFTER_MS = 1_500
"""The time after the last event of a script."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A script, and the world that it runs in."""

    name: str
    plan: Plan


def at(at_ms: int, kind: str, who: int = 0, amount: int = 0) -> Timed:
    """One event of a script."""
    return Timed(at_ms * MS, kind, who, amount)


def move(at_ms: int, kind: int) -> Timed:
    """One operation on all cursors of the group."""
    return at(at_ms, "move_cursors", 0, kind)


def records(start_ms: int, count: int, *, every_ms: int = 40, partitions: int = 2) -> list[Timed]:
    """So many frames of two records, over all partitions in turn."""
    return [at(start_ms + n * every_ms, "append", 7 * (n % partitions), 2) for n in range(count)]


def crash_points(scenario: Scenario) -> Iterator[Plan]:
    """The scenario with each possible crash."""
    effects = run(scenario.plan).effects
    for effect in range(1, effects + 1):
        for whole_daemon in (False, True):
            yield replace(scenario.plan, crash=CrashPoint(effect, whole_daemon))


def spoken(scenario: Scenario, protocol: str) -> Scenario:
    """The same script with this protocol in all groups."""
    plan = scenario.plan
    groups = tuple(replace(group, protocol=protocol) for group in plan.groups)
    return replace(scenario, plan=replace(plan, groups=groups))


def _scenario(
    name: str,
    script: Sequence[Timed],
    *,
    habits: Sequence[Habits] = (PROMPT,),
    partitions: tuple[int, ...] = (2,),
    groups: Sequence[GroupPlan] | None = None,
    hosts: int = 1,
    credit_records: int = 4_000,
) -> Scenario:
    ends_us = max(line.at_us for line in script) + HEAL_AFTER_MS * MS
    clocks = tuple((1_000_000, 1_000 * n) for n in range(1 + hosts + len(habits)))
    plan = Plan(
        len(name), partitions, tuple(groups or (_group(),)), tuple(habits), hosts, clocks,
        credit_records, 1 << 20, {}, tuple(script), ends_us,
    )  # fmt: skip
    return Scenario(name, plan)


def _group(name: str = "g0", **changed: object) -> GroupPlan:
    group = GroupPlan(name, 0, 0, earliest=True, ack_wait_ms=2_000, private=False)
    return replace(group, **changed)  # type: ignore[arg-type]  # its own fields


def _alone() -> list[Scenario]:
    begin = at(10, "begin")
    return [
        _scenario("one member reads what is there", [*records(0, 4), at(300, "begin")]),
        _scenario("one member reads what comes", [begin, *records(300, 4)]),
        _scenario("one member acks late", [begin, *records(300, 4)], habits=(SLOW,)),
        _scenario("one member refuses", [begin, *records(300, 4)], habits=(REFUSES,)),
        _scenario("one member lets an ack wait pass", [begin, *records(300, 4)], habits=(SITS,)),
        _scenario("a small credit", [*records(0, 6), at(300, "begin")], credit_records=2),
        _scenario(
            "a filter that rejects some", [begin, *records(300, 4)], groups=(_group(every=2),)
        ),
        _scenario(
            "a group that begins now", [begin, *records(300, 4)], groups=(_group(earliest=False),)
        ),
        _scenario("a private group", [begin, *records(300, 4)], groups=(_group(private=True),)),
        _scenario(
            "two groups on one topic",
            [begin, *records(300, 3)],
            groups=(_group(), _group("g1", every=3)),
        ),
        _scenario(
            "two topics, two groups",
            [begin, *records(300, 3)],
            partitions=(1, 2),
            groups=(_group(), _group("g1", topic=1)),
        ),
        _scenario("one partition", [begin, *records(300, 3, partitions=1)], partitions=(1,)),
    ]


def _joining() -> list[Scenario]:
    two = (PROMPT, PROMPT)
    both = [at(10, "begin"), at(15, "begin", 1)]
    one_by_one = [at(10, "begin"), at(500, "begin", 1)]
    return [
        _scenario("two members begin at once", [*both, *records(300, 4)], habits=two),
        _scenario("a second member joins", [*one_by_one, *records(300, 8)], habits=two),
        _scenario(
            "the second joins on another host", [*one_by_one, *records(300, 8)], habits=two, hosts=2
        ),
        _scenario(
            "a joiner takes from a slow member",
            [*one_by_one, *records(300, 8)],
            habits=(SLOW, PROMPT),
        ),
        _scenario(
            "a joiner takes from one that sits",
            [*one_by_one, *records(300, 6)],
            habits=(SITS, PROMPT),
        ),
        _scenario(
            "a joiner takes from one that refuses",
            [*one_by_one, *records(300, 6)],
            habits=(REFUSES, PROMPT),
        ),
        _scenario("a slow joiner", [*one_by_one, *records(300, 8)], habits=(PROMPT, SLOW)),
        _scenario(
            "a third member joins",
            [*both, at(600, "begin", 2), *records(300, 6)],
            habits=(PROMPT, PROMPT, PROMPT),
            partitions=(3,),
        ),
        _scenario(
            "more members than streams",
            [*both, *records(300, 4, partitions=1)],
            habits=two,
            partitions=(1,),
        ),
    ]


def _leaving() -> list[Scenario]:
    two = (PROMPT, PROMPT)
    both = [at(10, "begin"), at(15, "begin", 1)]
    return [
        _scenario("one leaves", [*both, *records(300, 8), at(500, "leave")], habits=two),
        _scenario(
            "one leaves while it holds",
            [*both, *records(300, 8), at(500, "leave")],
            habits=(SLOW, PROMPT),
        ),
        _scenario(
            "one leaves as another comes",
            [at(10, "begin"), at(500, "begin", 1), at(520, "leave"), *records(300, 6)],
            habits=two,
        ),
        _scenario(
            "one unsubscribes", [*both, *records(300, 8), at(500, "unsubscribe")], habits=two
        ),
        _scenario(
            "one unsubscribes while it holds",
            [*both, *records(300, 8), at(500, "unsubscribe")],
            habits=(SLOW, PROMPT),
        ),
        _scenario(
            "one unsubscribes and sits",
            [*both, *records(300, 6), at(500, "unsubscribe")],
            habits=(SITS, PROMPT),
        ),
        _scenario(
            "one resubscribes at once",
            [*both, *records(300, 8), at(500, "resubscribe")],
            habits=two,
        ),
        _scenario(
            "the only one resubscribes",
            [at(10, "begin"), *records(300, 8), at(500, "resubscribe")],
            habits=(SLOW,),
        ),
        _scenario(
            "resubscribing again and again",
            [*both, *records(300, 6), *(at(500 + 30 * n, "resubscribe") for n in range(4))],
            habits=two,
        ),
    ]


def _hurt() -> list[Scenario]:
    two = (PROMPT, PROMPT)
    both = [at(10, "begin"), at(15, "begin", 1), *records(300, 8)]
    alone = [at(10, "begin"), *records(300, 8)]
    return [
        _scenario("one is killed", [*both, at(500, "kill_client", 0, 700 * MS)], habits=two),
        _scenario(
            "one is killed while it holds",
            [*both, at(500, "kill_client", 0, 700 * MS)],
            habits=(SLOW, PROMPT),
        ),
        _scenario("the only one is killed", [*alone, at(500, "kill_client", 0, 200 * MS)]),
        _scenario(
            "a private one is killed",
            [*alone, at(500, "kill_client", 0, 200 * MS)],
            groups=(_group(private=True),),
            habits=(SLOW,),
        ),
        _scenario("a connection is cut", [*both, at(500, "cut_pipe", 0, 50 * MS)], habits=two),
        _scenario(
            "the client notices a cut late",
            [*both, at(500, "cut_pipe", 0, 600 * MS)],
            habits=(SLOW, PROMPT),
        ),
        _scenario("the leader is lost", [*both, at(500, "lose_leader")], habits=two),
        _scenario(
            "the leader is lost while a member joins",
            [at(10, "begin"), at(500, "begin", 1), at(710, "lose_leader"), *records(300, 8)],
            habits=two,
        ),
        _scenario(
            "the leader is lost twice",
            [*both, at(450, "lose_leader"), at(500, "lose_leader")],
            habits=two,
        ),
        _scenario("the daemon dies", [*both, at(500, "crash_daemon")], habits=two),
        _scenario(
            "the daemon dies over held records",
            [*both, at(500, "crash_daemon")],
            habits=(SLOW, SLOW),
        ),
    ]


def _operated() -> list[Scenario]:
    two = (PROMPT, PROMPT)
    both = [at(10, "begin"), at(15, "begin", 1), *records(300, 6)]
    pair = (_group(), _group("g1"))
    return [
        _scenario("a topic grows", [*both, at(450, "grow_topic", 0, 2)], habits=two),
        _scenario("a topic is sealed", [*both, at(450, "seal_topic")], habits=two),
        _scenario(
            "a topic is sealed under a slow member",
            [*both, at(450, "seal_topic")],
            habits=(SLOW, PROMPT),
        ),
        _scenario(
            "a topic is sealed and grows",
            [*both, at(450, "seal_topic"), at(455, "grow_topic", 0, 2), *records(600, 4)],
            habits=two,
        ),
        _scenario(
            "a topic is sealed before anybody reads",
            [*records(0, 4), at(250, "seal_topic"), at(400, "begin")],
        ),
        _scenario(
            "a topic is removed", [*both, at(450, "remove_topic", 1)], habits=two, partitions=(2, 1)
        ),
        _scenario(
            "the topic that is read is removed",
            [*both, at(450, "remove_topic")],
            habits=two,
            partitions=(2, 1),
        ),
        _scenario(
            "a group is destroyed", [*both, at(450, "destroy_group", 1)], habits=two, groups=pair
        ),
        _scenario(
            "a group is destroyed under slow members",
            [*both, at(450, "destroy_group", 1)],
            habits=(SLOW, SLOW),
            groups=pair,
        ),
    ]


REWIND, SKIP, SEEK, BY_HAND, IMPORT = range(1, len(OPERATIONS) + 1)


def _moved() -> list[Scenario]:
    two = (PROMPT, PROMPT)
    both = [at(10, "begin"), at(15, "begin", 1), *records(300, 6)]
    alone = [at(10, "begin"), *records(300, 6)]
    return [
        _scenario("a rewind under two members", [*both, move(600, REWIND)], habits=two),
        _scenario(
            "a rewind under a slow member", [*both, move(700, REWIND)], habits=(SLOW, PROMPT)
        ),
        _scenario("a skip under a slow member", [*alone, move(470, SKIP)], habits=(SLOW,)),
        _scenario(
            "an import that is taken back",
            [*both, move(600, IMPORT), at(960, "undo_moves"), *records(1_000, 2)],
            habits=(SLOW, SLOW),
        ),
        _scenario(
            "a seek that is cancelled at once",
            [*both, move(600, SEEK), at(606, "cancel_moves")],
            habits=(SLOW, PROMPT),
        ),
        _scenario(
            "records skipped by hand, asked for again and taken back",
            [*both, move(420, BY_HAND), at(430, "instruct_again"), at(860, "undo_moves")],
            habits=(SLOW, REFUSES),
        ),
        _scenario(
            "a rewind while a member joins and one leaves",
            [*both, at(500, "begin", 2), move(520, REWIND), at(540, "leave")],
            habits=(PROMPT, SLOW, PROMPT),
            partitions=(3,),
        ),
        _scenario(
            "a rewind as the leader is lost",
            [*both, at(500, "lose_leader"), move(540, REWIND), at(545, "lose_leader")],
            habits=two,
        ),
        _scenario(
            "a rewind of what is finished",
            [*alone, at(1_000, "seal_topic"), move(1_200, REWIND), at(1_240, "undo_moves")],
            habits=(SLOW,),
        ),
        _scenario(
            "a skip and a rewind of a group that nobody reads",
            [
                *records(0, 4),
                move(300, SKIP),
                move(350, REWIND),
                at(400, "undo_moves"),
                at(500, "begin"),
            ],
        ),
    ]


def _retried() -> list[Scenario]:
    begin, queues = at(10, "begin"), RetryPolicy(2, (100,), 1_000, 1 << 30)
    lane = (_group(queues=queues),)
    keyed = (_group(queues=replace(queues, ordered=True, blocks=True)),)
    return [
        _scenario(
            "keys wait behind their dead letters, and come back whole",
            [begin, *records(300, 6), at(700, "redrive", 0, WHOLE)],
            habits=(REJECTS,),
            groups=keyed,
        ),
        _scenario(
            "a joiner takes keys that wait from one that refuses",
            [begin, at(500, "begin", 1), *records(300, 6), at(900, "redrive", 0, WHOLE)],
            habits=(REFUSES, REFUSES),
            groups=keyed,
        ),
        _scenario(
            "one member refuses, and gets it again from a queue",
            [begin, *records(300, 4), at(700, "redrive")],
            habits=(REJECTS,),
            groups=lane,
        ),
        _scenario(
            "a joiner takes lanes from one that refuses",
            [begin, at(500, "begin", 1), *records(300, 6)],
            habits=(REFUSES, REFUSES),
            groups=lane,
        ),
        _scenario(
            "a topic grows under one that refuses",
            [
                begin,
                *records(300, 4),
                at(440, "switch_topic", 0, 1),
                *records(480, 3),
                at(900, "redrive"),
            ],
            habits=(REJECTS,),
            groups=lane,
        ),
    ]


def _grown_in_order() -> list[Scenario]:
    begin, queues = at(10, "begin"), RetryPolicy(2, (100,), 1_000, 1 << 30, ordered=True)
    skips = (_group(queues=queues),)
    blocks = (_group(queues=replace(queues, blocks=True)),)
    return [
        _scenario(
            "a topic grows in order, and dead letters come back",
            [
                begin,
                *records(300, 4),
                at(440, "switch_topic", 0, 4),
                *records(480, 6, partitions=6),
                at(900, "redrive"),
            ],
            habits=(REJECTS,),
            groups=blocks,
        ),
        _scenario(
            "a topic grows twice before the first one is read",
            [
                begin,
                at(12, "begin", 1),
                *records(300, 4),
                at(420, "switch_topic", 0, 4),
                at(440, "switch_topic", 0, 3),
                *records(480, 6, partitions=9),
            ],
            habits=(REFUSES, SITS),
            groups=skips,
        ),
    ]


def _read_again_in_order() -> list[Scenario]:
    begin, queues = at(10, "begin"), RetryPolicy(2, (100,), 1_000, 1 << 30, ordered=True)
    skips = (_group(queues=queues),)
    blocks = (_group(queues=replace(queues, blocks=True)),)
    grown = [
        begin,
        *records(300, 4),
        at(440, "switch_topic", 0, 4),
        *records(480, 6, partitions=6),
    ]
    return [
        _scenario(
            "a cursor goes back over a switch, and dead letters hold up their keys there",
            [*grown, move(1_100, REWIND), at(1_700, "redrive")],
            habits=(REJECTS,),
            groups=blocks,
        ),
        _scenario(
            "a cursor goes back over a switch, and that is taken back",
            [
                *grown,
                *records(1_060, 6, every_ms=10, partitions=6),
                move(1_100, REWIND),
                at(1_200, "undo_moves"),
                *records(1_250, 2),
            ],
            habits=(SLOW,),
            groups=skips,
        ),
        _scenario(
            "a cursor goes back over two switches under two members",
            [
                *grown,
                at(12, "begin", 1),
                at(720, "switch_topic", 0, 3),
                *records(760, 4, partitions=9),
                move(1_400, REWIND),
            ],
            habits=(REFUSES, REJECTS),
            groups=blocks,
        ),
        _scenario(
            "a skip over the rest of what is left is taken back over the switch, and cancelled",
            [
                *grown,
                move(460, SKIP),
                at(1_000, "undo_moves"),
                at(1_006, "cancel_moves"),
            ],
            habits=(SLOW, REFUSES),
            groups=blocks,
        ),
    ]


READ_AGAIN = tuple(_read_again_in_order())
"""The scripts in which cursors go back over a switch."""

SCENARIOS: tuple[Scenario, ...] = (
    *_alone(),
    *_joining(),
    *_leaving(),
    *_hurt(),
    *_operated(),
    *_moved(),
    *_retried(),
    *_grown_in_order(),
    *READ_AGAIN,
)
