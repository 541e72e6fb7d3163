"""What is refused before anything is asked (rows V and O of the checklist).

The server of NATS is asked whether it refuses the same configurations.
"""

from datetime import UTC, datetime
from typing import Any

import pytest

from dss_client.jetstream.calls import checked
from dss_client.jetstream.config import ConsumerConfig
from dss_client.jetstream.workflow import Create
from dss_core.errors import DssError, JetStreamMisuse
from support.jetstream_worlds import STREAM, a_call, config_named, nats_world

NOW = datetime(2026, 1, 1, tzinfo=UTC)

REFUSED: dict[str, dict[str, Any]] = {
    "V01 neither subject nor stream": {},
    "V03 pull with a deliver subject": {
        "subject": "a", "pull": True, "config": {"deliver_subject": "x"},
    },
    "V04 pull with a deliver group": {
        "subject": "a", "pull": True, "config": {"deliver_group": "g"},
    },
    "V04 pull with a queue": {"subject": "a", "pull": True, "queue": "g"},
    "V05 push with max_waiting": {"subject": "a", "config": {"max_waiting": 3}},
    "V05 push with max_batch": {"subject": "a", "config": {"max_batch": 3}},
    "V05 push with max_bytes": {"subject": "a", "config": {"max_bytes": 3}},
    "V06 pull without acks": {"subject": "a", "pull": True, "config": {"ack_policy": "none"}},
    "V06 pull with one ack for all": {
        "subject": "a", "pull": True, "config": {"ack_policy": "all"},
    },
    "V07 a queue with heartbeats": {"subject": "a", "queue": "q", "config": {"idle_heartbeat": 1}},
    "V07 a queue with flow control": {
        "subject": "a", "queue": "q", "config": {"idle_heartbeat": 1, "flow_control": True},
    },
    "V08 a queue with a dot": {"subject": "a", "queue": "bar.baz"},
    "V08 a queue with a space": {"subject": "a", "queue": "bar baz"},
    "V09 a queue and another deliver group": {
        "subject": "a", "queue": "q", "config": {"deliver_group": "g"},
    },
    **{
        f"V10 a durable name with {mark!r}": {"subject": "a", "durable": f"a{mark}b"}
        for mark in ".*> /\\\t\n"
    },
    "V11 two durable names": {
        "subject": "a", "durable": "d", "config": {"durable_name": "e"},
    },
    "V11 two consumers": {"stream": "s", "durable": "d", "consumer": "e"},
    "V12 bind to nothing": {"stream": "s", "consumer": ""},
    "V12 bind without a stream": {"subject": "a", "consumer": "c"},
    "V13 a negative threshold": {"subject": "a", "config": {"inactive_threshold": -1}},
    "V13 no replica": {"subject": "a", "config": {"num_replicas": 0}},
    "V15 a heart that races": {"subject": "a", "config": {"idle_heartbeat": 0.05}},
    "V17 a negative ack wait": {"subject": "a", "config": {"ack_wait": -1}},
    "V17 a negative back-off": {"subject": "a", "config": {"backoff": [1, -1]}},
    "V17 a negative heartbeat": {"subject": "a", "config": {"idle_heartbeat": -1}},
    "X03 one filter and several": {
        "subject": "a", "config": {"filter_subject": "a", "filter_subjects": ["a"]},
    },
    "O01 a durable name": {"subject": "a", "ordered": True, "durable": "d"},
    "O02 an ack policy": {"subject": "a", "ordered": True, "config": {"ack_policy": "explicit"}},
    "O03 several deliveries": {"subject": "a", "ordered": True, "config": {"max_deliver": 2}},
    "O04 a deliver subject": {
        "subject": "a", "ordered": True, "config": {"deliver_subject": "x"},
    },
    "O04 a queue": {"subject": "a", "ordered": True, "queue": "q"},
    "O04 binding": {"stream": "s", "ordered": True, "consumer": "c"},
    "O04 pulling": {"subject": "a", "ordered": True, "pull": True},
    "O05 no memory": {"subject": "a", "ordered": True, "config": {"mem_storage": False}},
    "O05 three replicas": {"subject": "a", "ordered": True, "config": {"num_replicas": 3}},
    "O05 no flow control": {"subject": "a", "ordered": True, "config": {"flow_control": False}},
}  # fmt: skip

ALLOWED: dict[str, dict[str, Any]] = {
    "V02 a stream alone": {"stream": "s"},
    "V17 a span of nothing": {"subject": "a", "config": {"inactive_threshold": 0}},
    "O02 no acks, said": {"subject": "a", "ordered": True, "config": {"ack_policy": "none"}},
    "O03 one delivery": {"subject": "a", "ordered": True, "config": {"max_deliver": 1}},
}

SERVER_REFUSES: dict[str, tuple[dict[str, Any], bool, int]] = {
    "V05 push with max_waiting": ({"max_waiting": 3}, False, 10080),
    "V15 a heart that races": ({"idle_heartbeat": 0.05}, False, 10083),
    "F06 flow control without heartbeats": ({"flow_control": True}, False, 10108),
    "F06 pull with flow control": ({"flow_control": True}, True, 10089),
    "pull with heartbeats": ({"idle_heartbeat": 1}, True, 10088),
    "pull with a rate": ({"rate_limit_bps": 1_000}, True, 10086),
    "push without acks, some pending": (
        {"ack_policy": "none", "max_ack_pending": 3}, False, 10082
    ),
    "a start that is not asked for": ({"opt_start_seq": 3}, False, 10094),
    "a time that is not asked for": ({"opt_start_time": NOW}, False, 10094),
    "a start that is not given": ({"deliver_policy": "by_start_sequence"}, False, 10094),
    "a time that is not given": ({"deliver_policy": "by_start_time"}, False, 10094),
    "A15 more back-off than deliveries": ({"max_deliver": 1, "backoff": [1, 2]}, False, 10116),
    "V17 a negative ack wait": ({"ack_wait": -1}, False, 10183),
    "X03 one filter and several": ({"filter_subjects": ["orders.eu"]}, False, 10136),
}  # fmt: skip


@pytest.mark.parametrize("row", REFUSED)
def test_a_call_that_contradicts_itself_is_refused(row: str) -> None:
    with pytest.raises(JetStreamMisuse):
        checked(a_call(**REFUSED[row]))


@pytest.mark.parametrize("row", ALLOWED)
def test_a_call_that_is_odd_and_right_is_not_refused(row: str) -> None:
    checked(a_call(**ALLOWED[row]))


def test_v08_a_queue_without_a_durable_name_is_the_durable_name() -> None:
    assert checked(a_call("a", queue="q")).durable == "q"
    assert checked(a_call("a", queue="q", durable="d")).durable == "d"
    assert checked(a_call("a", stream="s", queue="q", consumer="c")).durable == ""


@pytest.mark.parametrize("row", SERVER_REFUSES)
def test_what_the_server_refuses_is_refused_here(row: str) -> None:
    config, pull, _ = SERVER_REFUSES[row]
    filters = {"filter_subject": "orders.eu"} if "filter_subjects" in config else {}
    with pytest.raises(DssError):
        checked(a_call("orders.>", pull=pull, config=config | filters))


async def test_what_is_refused_here_the_server_refuses() -> None:
    async with nats_world() as world:
        codes: dict[str, object] = {}
        for row, (config, pull, _) in SERVER_REFUSES.items():
            where = {} if pull else {"deliver_subject": "x"}
            asked = ConsumerConfig(**({"filter_subject": "orders.>"} | where | config))
            port = world.js.port()
            create = Create(STREAM, config_named(asked, "c"))
            try:
                await port.create(create)
                codes[row] = 0
            except Exception as error:  # noqa: BLE001 - told by its code
                codes[row] = getattr(error, "err_code", error)
    assert codes == {row: code for row, (_, _, code) in SERVER_REFUSES.items()}
