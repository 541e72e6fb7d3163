"""The client without asyncio has the names of the other one, and no more than it must."""

import inspect
import re

import pytest

import dss_client
from dss_client import sync
from dss_client.sync import administration

INNER = {
    "Client": {"opened_session", "read_entries", "spawn", "stored_runs"},
    "Producer": {"call", "into"},
    "Subscription": {
        *("asked_back", "bring_acks", "end_taking", "ordered", "taken_back"),
        *("deliver", "ended", "fail", "granted", "handed_below", "handouts", "note_current"),
        "number",
        *("options", "refused", "revoked", "set_paused", "stands", "stop", "sure_s"),
    },
}
"""What parts of the client call; no user does."""
ONLY_HERE = {"Client": {"close"}, "Delivery": {"wait"}}

ONLY_THERE = {"Jobs": {"drive"}}
"""It gives a lease to a driver, which works in a loop."""

PARTS = inspect.get_annotations(dss_client.Client)
PAIRS = [
    (dss_client.Client, sync.Client),
    (dss_client.Producer, sync.Producer),
    (dss_client.Delivery, sync.Delivery),
    (dss_client.Subscription, sync.Subscription),
    (dss_client.Reader, sync.Reader),
    (dss_client.DeliveredRecord, sync.DeliveredRecord),
    (dss_client.DeliveredBatch, sync.DeliveredBatch),
    *(
        (getattr(administration, f"Async{name}"), getattr(administration, name))
        for name in map(str.capitalize, PARTS)
    ),
]


def public(of: type) -> set[str]:
    """Methods, properties, and what an instance is given at its beginning."""
    given = re.findall(r"self\.(\w+)\b.*? = ", inspect.getsource(of))
    annotated = (name for each in of.__mro__ for name in inspect.get_annotations(each))
    plain = {name for name in (*dir(of), *annotated, *given) if not name.startswith("_")}
    return plain - INNER.get(of.__name__, set()) - ONLY_THERE.get(of.__name__, set())


@pytest.mark.parametrize(("there", "here"), PAIRS, ids=lambda each: each.__name__)
def test_the_names_of_a_class_are_those_of_its_twin(there: type, here: type) -> None:
    assert public(here) - ONLY_HERE.get(here.__name__, set()) == public(there)


@pytest.mark.parametrize(("there", "here"), PAIRS, ids=lambda each: each.__name__)
def test_a_method_takes_what_its_twin_takes(there: type, here: type) -> None:
    for name in public(there):
        theirs = getattr(there, name, None)
        if inspect.isfunction(theirs):
            ours = inspect.signature(getattr(here, name)).parameters
            expected = inspect.signature(theirs).parameters
            assert [*ours] == [*expected], name
            assert [each.default for each in ours.values()] == [
                each.default for each in expected.values()
            ], name


def test_connect_takes_what_it_takes_there() -> None:
    here, there = (inspect.signature(each.connect) for each in (sync, dss_client))
    assert here.parameters.keys() == there.parameters.keys()


def test_every_part_of_a_client_has_its_twin() -> None:
    assert inspect.get_annotations(administration.Administered).keys() == PARTS.keys()
