from typing import Any, cast

import pytest

from dss_api.v1 import daemon_pb2, groups_pb2
from dss_client._connection import Connection
from dss_client.group_values import Group
from dss_client.groups import Groups
from dss_client.operations import Operations
from dss_core.changes import EditGroup, GrowTopic, RedriveDeadLetters, SetShardCount
from dss_core.errors import (
    DaemonKnowsNoOrder,
    DaemonKnowsNoQueues,
    DaemonKnowsNoShards,
    IllegalArgument,
)


class Asked:
    """A connection that keeps what it is asked, and answers with a group of that."""

    def __init__(self, *features: str) -> None:
        self.features = features
        self.requests: list[groups_pb2.CreateGroupRequest] = []
        self.groups: Any = type("Groups", (), {"Create": None})
        self.daemon: Any = type("Daemon", (), {"Status": None})
        self.operations: Any = type("Operations", (), {"Plan": None, "Apply": None})

    async def ask(self, call: object, request: object) -> daemon_pb2.DaemonStatus:
        assert isinstance(request, daemon_pb2.DaemonStatusRequest), "it was asked for more"
        return daemon_pb2.DaemonStatus(version="0.5", features=self.features)

    async def change(
        self, call: object, request: groups_pb2.CreateGroupRequest
    ) -> groups_pb2.Group:
        self.requests.append(request)
        return groups_pb2.Group(
            kind=groups_pb2.GROUP_KIND_SHARED,
            protocol=groups_pb2.GROUP_PROTOCOL_BORROW,
            on_damage=groups_pb2.ON_DAMAGE_PASS,
            max_deliver=request.max_deliver,
            backoff_ms=request.backoff_ms,
            queue_records=request.queue_records,
            queue_bytes=request.queue_bytes,
            ordered=request.ordered,
            on_dead_letter=request.on_dead_letter,
            keyless=request.keyless,
            retrying=3,
            dead=2,
        )


async def created(asked: Asked, **given: Any) -> Group:  # noqa: ANN401 - as of `create`
    return await Groups(cast("Connection", asked)).create("$share/g/t/#", **given)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"backoff": ["1s"]}, "backoff '1s' is not allowed: it is a number of seconds"),
        ({"backoff": 1}, "backoff 1 is not allowed: it is a sequence"),
        ({"backoff": "1s"}, "backoff '1s' is not allowed: it is a sequence"),
        ({"backoff": [-1]}, "backoff -1 is not allowed: a span is not negative"),
        ({"backoff": [float("inf")]}, "backoff inf is not allowed: it is a number of seconds"),
        ({"ack_wait": -1}, "ack_wait -1 is not allowed: a span is not negative"),
        ({"ack_wait": "30s"}, "ack_wait '30s' is not allowed: it is a number of seconds"),
        ({"ack_wait": float("nan")}, "ack_wait nan is not allowed"),
        ({"max_deliver": "3"}, "this group is not allowed"),
    ],
)
async def test_a_setting_of_the_wrong_kind_is_said_and_nothing_is_asked(
    given: dict[str, Any], told: str
) -> None:
    asked = Asked("queues")
    with pytest.raises(IllegalArgument, match=told):
        await created(asked, **given)
    assert asked.requests == []


async def test_a_daemon_that_knows_no_queues_is_asked_for_nothing_with_some() -> None:
    older = Asked()
    with pytest.raises(DaemonKnowsNoQueues, match=r"0\.5.*nothing was made"):
        await created(older, max_deliver=5)
    edits = EditGroup("g", 1_000, max_deliver=5), EditGroup("g", backoff_ms=(1,))
    operations = Operations(cast("Connection", older))
    for edit in edits:
        with pytest.raises(DaemonKnowsNoQueues):
            await operations.plan(edit)
        with pytest.raises(DaemonKnowsNoQueues):
            await operations.apply(edit)
    assert not older.requests
    await created(older)
    assert len(older.requests) == 1


async def test_a_daemon_that_knows_no_order_is_asked_for_nothing_of_it() -> None:
    older = Asked("queues")
    operations = Operations(cast("Connection", older))
    for given in ({"ordered": True}, {"on_dead_letter": "skip"}, {"keyless": "dead"}):
        with pytest.raises(DaemonKnowsNoOrder, match=r"0\.5.*nothing was made"):
            await created(older, max_deliver=5, **given)
        with pytest.raises(DaemonKnowsNoOrder):
            await operations.apply(EditGroup("g", **cast("Any", given)))
    with pytest.raises(DaemonKnowsNoOrder):
        await operations.plan(RedriveDeadLetters("g", unordered=True))
    with pytest.raises(IllegalArgument, match="block or skip"):
        await created(older, on_dead_letter="wait")
    assert not older.requests
    with pytest.raises(DaemonKnowsNoQueues):
        await created(Asked(), max_deliver=5, ordered=True)


async def test_a_daemon_that_knows_no_shards_is_asked_for_nothing_of_them() -> None:
    older = Asked("queues", "ordered", "metadata", "steered")
    operations = Operations(cast("Connection", older))
    for given in ({"shards": 2}, {"allocation": "sticky"}, {"shards": 2, "metadata": "mine"}):
        with pytest.raises(DaemonKnowsNoShards, match=r"0\.5.*nothing was made"):
            await created(older, max_deliver=5, ordered=True, **cast("Any", given))
    for change in (SetShardCount("g", 2), GrowTopic("t", 8, with_shards=True)):
        with pytest.raises(DaemonKnowsNoShards):
            await operations.plan(change)
        with pytest.raises(DaemonKnowsNoShards):
            await operations.apply(change)
    assert not older.requests
    await created(older, max_deliver=5, ordered=True)
    newer = Asked(*older.features, "shards")
    await created(newer, max_deliver=5, ordered=True, shards=2)
    assert (len(older.requests), newer.requests[0].shards) == (1, 2)


async def test_a_group_is_made_ordered() -> None:
    asked = Asked("ordered", "queues")
    given = {"ordered": True, "on_dead_letter": "skip", "keyless": "dead"}
    group = await created(asked, max_deliver=5, **given)
    assert (group.ordered, group.on_dead_letter, group.keyless) == (True, "skip", "dead")
    plain = await created(asked)
    assert (plain.ordered, plain.on_dead_letter, plain.keyless) == (False, None, None)
    assert not asked.requests[1].HasField("ordered")


async def test_a_group_is_made_with_queues() -> None:
    asked = Asked("queues")
    group = await created(
        asked, max_deliver=5, backoff=[1, 0.25], queue_records=100, queue_bytes=1 << 20
    )
    (request,) = asked.requests
    assert (request.max_deliver, [*request.backoff_ms]) == (5, [1_000, 250])
    assert (group.max_deliver, group.backoff_ms) == (5, (1_000, 250))
    assert (group.queue_records, group.queue_bytes) == (100, 1 << 20)
    assert (group.retrying, group.dead) == (3, 2)


async def test_a_group_is_plain_where_nothing_is_said_of_queues() -> None:
    asked = Asked()
    group = await created(asked)
    assert not asked.requests[0].HasField("max_deliver")
    assert (group.max_deliver, group.backoff_ms) == (0, ())


@pytest.mark.parametrize(
    "given",
    [
        {"max_deliver": -1},
        {"queue_bytes": 1 << 64},
    ],
)
async def test_a_number_that_does_not_fit_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(IllegalArgument, match="this group"):
        await created(Asked(), **given)
