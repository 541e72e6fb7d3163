"""The timed events of a run: records, members, operators, faults.

One function for each kind of `Timed`. Each works on the world's state at that time, and does
nothing if it does not apply. Those that may make records come twice report that to the history.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from dss_sim.groups.catalogue import grown_by
from dss_sim.groups.checker import MEMBER_FAULTS
from dss_sim.groups.client import Client
from dss_sim.groups.cursor_operator import KINDS as OPERATIONS
from dss_sim.groups.history import Destroyed, Disturbed, Gone
from dss_sim.groups.hold_operator import HOLD
from dss_sim.groups.member_plans import CANCEL, MEMBER_OPERATIONS
from dss_sim.groups.plan import Dies, Timed
from dss_sim.groups.producers import Producer
from dss_sim.groups.queue_plans import ERRAND, REDRIVE, SWITCH, WHOLE
from dss_sim.groups.shard_operator import SET_COUNT
from dss_sim.groups.store import at_once
from dss_sim.groups.strict_plans import LEADER_FAULTS, LEAVES, SLOWING, UNDISTURBING
from dss_sim.groups.world import World
from dssd.sessions.client_items import Subscribe
from dssd.store.keys import key_of
from dssd.store.port import Delete, Write
from dssd.store.rows import (
    BanRow,
    GrantRow,
    GroupRow,
    LeaderRow,
    PendingMoveRow,
    ProgressRow,
    StreamSetRow,
)
from dssd.topics.model import StorageTopic, Topic

NOTICES_US = 1_000
"""How long after it thaws a frozen client has heard everything that came meanwhile."""
CUT_AFTER_US = (3_100_000, 5_000_000)
"""How long after a client froze the transport cuts it off."""
APPENDS_BY = 1_009
"""`Timed.who` divided by this chooses the producer, independently of the stream."""
FOUND_AGAIN_US = 2_000_000
"""How long after a lease all late messages, and their resends, have arrived."""
KINDS_OF_MOVES = (None, *OPERATIONS)
"""The kind of operation by `Timed.amount`; None: any."""
BURST_FRAMES = 8
"""More than a producer may have in flight."""


def happen(world: World, timed: Timed) -> None:
    """Let the event happen now."""
    if (
        timed.kind not in UNDISTURBING
        or _loses_goodbyes(world, timed)
        or _outlasts_leases(world, timed)
        or _spares_vanished(world, timed)
    ):
        world.tell(Disturbed(world.schedule.now_us, timed.kind))
    if timed.kind in MEMBER_FAULTS and _has_leader_faults(world):
        world.tell(Disturbed(world.schedule.now_us, "no leader may hear of it"))
    KINDS[timed.kind](world, timed)


def _loses_goodbyes(world: World, timed: Timed) -> bool:
    """A goodbye is sent once; if a dying leader misses it or does not save it, a doubt remains."""
    return timed.kind in LEAVES and _has_leader_faults(world)


def _has_leader_faults(world: World) -> bool:
    return any(each.kind in LEADER_FAULTS for each in world.plan.timed)


def _spares_vanished(world: World, timed: Timed) -> bool:
    """Whether a client that vanishes in a pause is not charged."""
    return timed.kind == "pause" and any(each.kind in MEMBER_FAULTS for each in world.plan.timed)


def _outlasts_leases(world: World, timed: Timed) -> bool:
    """Whether a lease may end before a new leader is found: the way is slow, or it dies soon
    too."""
    if timed.kind not in LEADER_FAULTS:
        return False
    if SLOWING & world.plan.rates.keys():
        return True
    within_us = world.plan.timing.lease_ms * 1_000 + FOUND_AGAIN_US
    return any(
        each is not timed and 0 <= timed.at_us - each.at_us <= within_us
        for each in world.plan.timed
        if each.kind in LEADER_FAULTS
    )


# Records and members


def _append(world: World, timed: Timed) -> None:
    topics = list(world.catalogue.topics.values())
    if topics:
        streams = topics[timed.who % len(topics)].storage_topics[-1].streams()
        stream = streams[timed.who // 7 % len(streams)]
        world.append(stream, timed.amount, timed.who // APPENDS_BY)


def _begin(world: World, timed: Timed) -> None:
    client = world.clients[timed.who % len(world.clients)]
    for group in world.groups.values():
        if group.session_id is None or client is world.clients[0]:
            client.wanted[group.group_id] = group.name
    client.begin()


def _client(world: World, timed: Timed) -> Client:
    return world.clients[timed.who % len(world.clients)]


def _join(world: World, timed: Timed) -> None:
    client = _client(world, timed)
    if not client.staying:
        _begin(world, timed)


def _leave(world: World, timed: Timed) -> None:
    client = _client(world, timed)
    if client.host.frozen_until_us > world.schedule.now_us:
        # A client that stands still cannot leave.
        return
    others = [each for each in world.clients if each is not client and each.staying]
    for group in client.groups():
        if not any(group in each.wanted.values() for each in others):
            return
    client.leave()


def _unsubscribe(world: World, timed: Timed) -> None:
    client = _client(world, timed)
    number = 1 + timed.who // 11 % len(world.plan.groups)
    group = client.wanted.get(number)
    others = [each for each in world.clients if each is not client and each.staying]
    if group is not None and any(group in each.wanted.values() for each in others):
        client.unsubscribe(number)


def _resubscribe(world: World, timed: Timed) -> None:
    client = _client(world, timed)
    for group in world.groups.values():
        if group.group_id in client.wanted and group.session_id is None:
            client.unsubscribe(group.group_id)
            client.subscribe(group.group_id, group.name)
            return


def _neglect(world: World, timed: Timed) -> None:
    """The user takes nothing of one group, and goes on with the others."""
    client = _client(world, timed)
    groups = sorted(client.wanted.values())
    if len(groups) > 1:
        group = groups[timed.who // 11 % len(groups)]
        client.neglect(group)
        world.schedule.after(_before_heal(world, timed.amount), partial(client.attend, group))


def _intrude(world: World, timed: Timed) -> None:
    pipe = world.clients[1 + timed.who % len(world.clients[1:])].pipe if world.clients[1:] else None
    for group in world.groups.values():
        if pipe is not None and group.session_id is not None:
            pipe.up(Subscribe(group.group_id, group.name))


# Operators


def _topic(world: World, timed: Timed) -> Topic | None:
    topics = list(world.catalogue.topics.values())
    return topics[timed.who % len(topics)] if topics else None


def _grow_topic(world: World, timed: Timed) -> None:
    topic = _topic(world, timed)
    if topic is not None:
        part = grown_by(topic, timed.amount, world.catalogue.next_part())
        world.change_topic(replace(topic, storage_topics=(*topic.storage_topics, part)), part)


def _seal_topic(world: World, timed: Timed) -> None:
    topic = _topic(world, timed)
    if topic is not None:
        _seal(world, topic, topic.storage_topics[-1])


def _switch_topic(world: World, timed: Timed) -> None:
    """The topic grows: another storage topic, then the seal; new records go there."""
    topic = _topic(world, timed)
    if topic is not None:
        _grow_topic(world, timed)
        part = topic.storage_topics[-1]
        # The next daemon continues the operation.
        world.catalogue.to_seal[part.storage_topic_id] = partial(_sealed, world, topic.name, part)
        _seal(world, topic, part)


def _seal(world: World, topic: Topic, part: StorageTopic) -> None:
    if part.ends is None:
        sealed = partial(_sealed, world, topic.name, part)
        world.writer.seal(part.storage_topic_id, sealed)


def _sealed(world: World, name: str, part: StorageTopic) -> None:
    topic = world.catalogue.topics.get(name)
    world.catalogue.to_seal.pop(part.storage_topic_id, None)
    if topic is not None:
        ends = tuple(world.log.bounds(stream).end for stream in part.streams())
        parts = tuple(replace(each, ends=ends) if each is part else each
                      for each in topic.storage_topics)  # fmt: skip
        takes = max(topic.produce_ordinal, min(part.ordinal + 1, len(parts) - 1))
        world.change_topic(replace(topic, storage_topics=parts, produce_ordinal=takes))


def _remove_topic(world: World, timed: Timed) -> None:
    topic = _topic(world, timed)
    if topic is None or len(world.catalogue.topics) == 1:
        return
    del world.catalogue.topics[topic.name]
    for stream in topic.streams():
        world.tell(Gone(world.schedule.now_us, world.names[stream]))
    for group in world.groups.values():
        world.remove_queues(group.group_id, topic.streams())
    world.log.remove(topic.streams())
    for part in topic.storage_topics:
        world.catalogue.to_seal.pop(part.storage_topic_id, None)
    world.writer.remove([part.storage_topic_id for part in topic.storage_topics])
    world.leaders.change_topic(topic, gone=topic.streams())


def _destroy_group(world: World, timed: Timed) -> None:
    names = list(world.groups)
    if len(names) < 2:
        return
    group = world.groups.pop(names[timed.who % len(names)])
    rows, key = world.store.rows, (group.group_id,)
    writes: list[Write] = [Delete(GroupRow, key), Delete(LeaderRow, key)]
    for kind in (GrantRow, ProgressRow, StreamSetRow, PendingMoveRow, BanRow):
        writes += [Delete(kind, key_of(found.row)) for found in at_once(rows.scan(kind, key))]
    at_once(rows.commit(writes))
    world.tell(Destroyed(world.schedule.now_us, group.name))
    lanes = [main for group_id, main in world.catalogue.queues if group_id == group.group_id]
    world.remove_queues(group.group_id, lanes)
    world.cursor_operator.forget(group.group_id)
    world.member_operator.forget(group.group_id)
    world.pause_operator.forget(group)
    world.shard_operator.forget(group.group_id)
    # Last, because the host may die in that step.
    world.leaders.destroy(group.group_id)


def _operated(world: World, timed: Timed) -> None:
    groups = list(world.groups.values())
    group, operator = groups[timed.who % len(groups)], world.member_operator
    asks = {
        "transfer": operator.transfer,
        "revoke_grant": operator.revoke,
        "unpin": operator.unpin,
        "rebalance": operator.rebalance,
        "evict": operator.evict,
        "ask_again": operator.repeat,
        CANCEL: operator.cancel,
    }
    asks[timed.kind](group)


def _group(world: World, timed: Timed) -> GroupRow:
    groups = list(world.groups.values())
    return groups[timed.who % len(groups)]


def _move_cursors(world: World, timed: Timed) -> None:
    group = _group(world, timed)
    if group.ordered or not group.max_deliver:
        world.cursor_operator.move(group, KINDS_OF_MOVES[timed.amount])


def _undo_moves(world: World, timed: Timed) -> None:
    world.cursor_operator.undo(_group(world, timed))


def _cancel_moves(world: World, timed: Timed) -> None:
    world.cursor_operator.cancel(_group(world, timed))


def _instruct_again(world: World, timed: Timed) -> None:
    world.cursor_operator.repeat(_group(world, timed))


def _redrive(world: World, timed: Timed) -> None:
    group = _group(world, timed)
    if group.max_deliver:
        world.cursor_operator.redrive(group, whole=timed.amount == WHOLE)


def _errand(world: World, timed: Timed) -> None:
    group = _group(world, timed)
    if group.max_deliver:
        world.cursor_operator.errand(group)


def _hold(world: World, timed: Timed) -> None:
    world.hold_operator.hold(_group(world, timed).group_id, timed.amount)


def _set_count(world: World, timed: Timed) -> None:
    world.shard_operator.set_count(_group(world, timed), timed.amount)


def _pause(world: World, timed: Timed) -> None:
    world.pause_operator.pause(_group(world, timed), timed.amount)


# Faults


def _before_heal(world: World, span_us: int) -> int:
    """The effects of a fault are over when the world is healed."""
    return min(span_us, world.plan.heal_us - world.schedule.now_us)


def _partition(world: World, timed: Timed) -> None:
    leaders = world.leaders.host
    session = world.session_hosts[timed.who % len(world.session_hosts)]
    way = timed.who // 5 % 3
    if way != 1:
        world.network.block(leaders, session, timed.amount)
    if way != 0:
        world.network.block(session, leaders, timed.amount)


def _lose_leader(world: World, timed: Timed) -> None:
    groups = list(world.leaders.leading)
    if groups:
        world.leaders.lose_leader(groups[timed.who % len(groups)])


def _crash_leader_host(world: World, timed: Timed) -> None:
    world.crash(world.leaders.host)


def _crash_session_host(world: World, timed: Timed) -> None:
    world.crash(world.session_hosts[timed.who % len(world.session_hosts)])


def _crash_daemon(world: World, timed: Timed) -> None:
    world.crash_daemon()


def _stop_daemon(world: World, timed: Timed) -> None:
    world.stop_daemon()


def _crash_at_effect(world: World, timed: Timed) -> None:
    world.crash_at_effect = world.effects + timed.amount


def _kill_client(world: World, timed: Timed) -> None:
    client = _client(world, timed)
    if client.staying:
        client.kill()
        world.schedule.after(_before_heal(world, timed.amount), client.begin)


def _cut_pipe(world: World, timed: Timed) -> None:
    """Cut the connection; the session notices before its client, which only doubts after a silence.

    A frozen client notices nothing before it thaws.
    """
    client = _client(world, timed)
    if client.pipe is None:
        return
    goes_on_us = client.host.frozen_until_us - world.schedule.now_us + NOTICES_US
    second_us = max(_before_heal(world, timed.amount), goes_on_us)
    first_us = second_us // 2
    if first_us > client.doubts_in_us():
        client.pipe.cut(session_notices_us=first_us, client_notices_us=second_us)
    else:
        client.pipe.cut(session_notices_us=second_us, client_notices_us=first_us)


def _lose_power(world: World, timed: Timed) -> None:
    world.crash_daemon(power=True)


def _die_writing(world: World, timed: Timed) -> None:
    step = world.writer.steps + 1 + timed.who // 2 % 8
    world.writer.dies = Dies(step, power=bool(timed.who % 2))


def _fail_sync(world: World, timed: Timed) -> None:
    world.writer.sync_fails = True


def _fill_disk(world: World, timed: Timed) -> None:
    world.writer.full_until_us = world.schedule.now_us + _before_heal(world, timed.amount)


def _rot(world: World, timed: Timed) -> None:
    topics = list(world.catalogue.topics.values())
    if topics:
        streams = topics[timed.who % len(topics)].streams()
        stream = streams[timed.who // 7 % len(streams)]
        count, bits = 1 + timed.who // 53 % 4, timed.who // APPENDS_BY
        # What marks cover would not be read anyway; without marks a start judges the bad bytes.
        heads, marks = bits % 4 > 1, bits % 4 > 0
        at = timed.who // 211 if bits // 4 % 2 else -1
        world.writer.rot(stream, at, count, heads=heads, marks=marks)


def _lose_sectors(world: World, timed: Timed) -> None:
    topics = list(world.catalogue.topics.values())
    if topics:
        streams = topics[timed.who % len(topics)].streams()
        stream = streams[timed.who // 7 % len(streams)]
        world.writer.lose_sectors(stream, timed.who // 211, 1 + timed.who // 53 % 2)


def _fail_reads(world: World, timed: Timed) -> None:
    topics = list(world.catalogue.topics.values())
    if topics:
        streams = topics[timed.who % len(topics)].streams()
        until_us = world.schedule.now_us + _before_heal(world, timed.amount)
        for stream in streams[timed.who // 7 % len(streams) :]:
            world.log.unreadable_until_us[stream] = until_us


def _busy_producer(world: World, timed: Timed) -> Producer:
    """The producer that `_append` takes; every other time it has just sent more than it may."""
    if timed.who % 2:
        _burst(world, timed)
    return world.producers[timed.who // APPENDS_BY % len(world.producers)]


def _cut_producer(world: World, timed: Timed) -> None:
    _busy_producer(world, timed).cut(_before_heal(world, timed.amount))


def _kill_producer(world: World, timed: Timed) -> None:
    _busy_producer(world, timed).kill(_before_heal(world, timed.amount))


def _burst(world: World, timed: Timed) -> None:
    for number in range(BURST_FRAMES):
        _append(world, replace(timed, amount=1 + (timed.amount + number) % 6))


def _freeze_client(world: World, timed: Timed) -> None:
    client = _client(world, timed)
    client.host.freeze(timed.amount)
    pipe = client.pipe
    low, high = CUT_AFTER_US
    cut_us = low + timed.who % (high - low)
    if pipe is not None and timed.amount > cut_us:
        world.schedule.after(cut_us, partial(pipe.cut, client_notices_us=0))


def _freeze_session_host(world: World, timed: Timed) -> None:
    world.session_hosts[timed.who % len(world.session_hosts)].freeze(timed.amount)


def _freeze_leader_host(world: World, timed: Timed) -> None:
    world.leaders.host.freeze(timed.amount)


KINDS: Mapping[str, Callable[[World, Timed], None]] = {
    "pause": _pause,
    SET_COUNT: _set_count,
    HOLD: _hold,
    REDRIVE: _redrive,
    ERRAND: _errand,
    "append": _append,
    "begin": _begin,
    "join": _join,
    "leave": _leave,
    "unsubscribe": _unsubscribe,
    "resubscribe": _resubscribe,
    "neglect": _neglect,
    "intrude": _intrude,
    "grow_topic": _grow_topic,
    "seal_topic": _seal_topic,
    SWITCH: _switch_topic,
    "remove_topic": _remove_topic,
    "destroy_group": _destroy_group,
    "move_cursors": _move_cursors,
    "undo_moves": _undo_moves,
    "cancel_moves": _cancel_moves,
    "instruct_again": _instruct_again,
    **dict.fromkeys((*MEMBER_OPERATIONS, CANCEL), _operated),
    "partition": _partition,
    "lose_leader": _lose_leader,
    "crash_leader_host": _crash_leader_host,
    "crash_session_host": _crash_session_host,
    "crash_daemon": _crash_daemon,
    "stop_daemon": _stop_daemon,
    "crash_at_effect": _crash_at_effect,
    "kill_client": _kill_client,
    "cut_pipe": _cut_pipe,
    "freeze_client": _freeze_client,
    "freeze_session_host": _freeze_session_host,
    "freeze_leader_host": _freeze_leader_host,
    "lose_power": _lose_power,
    "die_writing": _die_writing,
    "fail_sync": _fail_sync,
    "fill_disk": _fill_disk,
    "rot": _rot,
    "lose_sectors": _lose_sectors,
    "fail_reads": _fail_reads,
    "cut_producer": _cut_producer,
    "kill_producer": _kill_producer,
    "burst": _burst,
}
