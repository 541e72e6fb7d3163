from dss_client import DeliveredRecord
from dss_client._chains import Chain
from support.taken_records import grant_of, taken


def offset_of(record: DeliveredRecord | None) -> int | None:
    return None if record is None else record.offset


def test_records_of_a_chain_have_their_turn_one_after_the_other() -> None:
    grant = grant_of()
    chain = Chain(grant)
    first, second = taken(grant, 0, b"a", b"a")
    assert chain.arrived(first) == (first, 0)
    assert chain.arrived(second) == (None, 0)
    assert chain.finished() == (second, 1)
    assert chain.finished() == (None, 1)
    assert chain.is_idle


def test_a_parked_record_gives_its_place_back_when_it_is_parked_and_only_then() -> None:
    grant = grant_of()
    chain = Chain(grant)
    first, second, third = taken(grant, 0, b"a", b"a", b"a")
    chain.arrived(first)
    chain.arrived(second)
    chain.refused(first)
    assert chain.finished() == (None, 2)
    assert chain.arrived(third) == (None, 1)
    (again,) = taken(grant, 0, b"a", again=True)
    assert chain.arrived(again) == (again, 0)
    chain.handled(again)
    assert chain.finished() == (second, 1)
    assert chain.finished() == (third, 0)
    assert chain.finished() == (None, 0)
    assert chain.is_idle


def test_what_waits_behind_several_refused_records_goes_on_behind_the_last_of_them() -> None:
    grant = grant_of()
    chain = Chain(grant)
    records = taken(grant, 0, *[b"a"] * 5)
    for record in records[1::2]:
        chain.refused(record)
    assert offset_of(chain.arrived(records[4])[0]) is None
    assert offset_of(chain.arrived(records[2])[0]) is None
    assert offset_of(chain.arrived(records[1])[0]) == 1
    chain.handled(records[1])
    assert offset_of(chain.finished()[0]) == 2
    assert offset_of(chain.finished()[0]) is None
    assert offset_of(chain.arrived(records[3])[0]) == 3
    chain.handled(records[3])
    assert offset_of(chain.finished()[0]) == 4


def test_a_chain_that_is_dropped_frees_the_places_of_what_waited() -> None:
    grant = grant_of()
    chain = Chain(grant)
    for record in taken(grant, 0, *[b"a"] * 4):
        chain.arrived(record)
    assert chain.drop() == 3
    assert chain.finished() == (None, 1)
    assert chain.is_idle


def test_what_comes_after_a_parked_record_is_not_handled_where_that_one_is_left() -> None:
    grant = grant_of()
    chain = Chain(grant)
    first, second, third, fourth = taken(grant, 0, *[b"a"] * 4)
    for record in (first, second, third):
        chain.arrived(record)
    chain.refused(first)
    assert chain.finished() == (None, 3)
    (again,) = taken(grant, 0, b"a", again=True)
    assert chain.arrived(again) == (again, 0)
    chain.arrived(fourth)
    assert chain.take_parked() == [second, third, fourth]
    chain.handled(again)
    assert chain.finished()[0] is None
    assert chain.is_idle
