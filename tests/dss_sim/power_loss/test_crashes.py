"""Which states are looked at."""

from dss_sim.power_loss.crashes import State, final_image, states, without_syncs
from dss_sim.power_loss.image import Content
from dss_sim.power_loss.operations import OpenFile, Operation, Step, Sync, Tell, Write

LONG = b"x" * 2_000


def steps(*operations: Operation) -> list[Step]:
    return [Step(operation, at, at) for at, operation in enumerate(operations)]


RUN = steps(
    *(OpenFile(0, ""), OpenFile(1, "f", create=True), Sync(0), Write(1, 0, LONG)),
    *(Sync(1), Tell("stored"), Write(1, 2_000, LONG), Write(1, 9_000, LONG)),
)


def contents(found: list[State]) -> list[Content]:
    return [state.image.files.get("f", Content(b"", -1)) for state in found]


def test_the_same_seed_gives_the_same_states() -> None:
    first, second = list(states(RUN, seed=3)), list(states(RUN, seed=3))
    assert first == second
    assert len({(state.image.digest(), state.told) for state in first}) == len(first)


def test_a_share_of_them_is_some_of_them() -> None:
    everything = [state.image.digest() for state in states(RUN, seed=3)]
    some = [state.image.digest() for state in states(RUN, seed=3, share=0.3)]
    assert 0 < len(some) < len(everything)
    assert set(some) <= set(everything)


def test_what_was_told_grows_and_what_was_synced_stays() -> None:
    found = list(states(RUN, seed=3))
    told = [state for state in found if state.told]
    assert [state.told for state in told] == [("stored",)] * len(told)
    assert all(bytes(content)[:2_000] == LONG for content in contents(told))


def test_nothing_all_and_torn_writes_are_among_them() -> None:
    found = contents(list(states(RUN, seed=3)))
    assert Content(b"", 0) in found
    assert final_image(RUN).files["f"] in found
    torn = {len(content.content) for content in found if content.size == 4_000}
    assert {2_048, 2_560, 3_072, 3_584} <= torn, "at the boundaries of its sectors"
    assert Content(LONG * 2, 11_000) in found, "a size without its bytes"


def test_a_later_write_may_be_there_without_an_earlier_one() -> None:
    found = contents(list(states(RUN, seed=3)))
    assert Content(LONG.ljust(9_000, b"\0") + LONG, 11_000) in [
        Content(content.content[:2_000].ljust(9_000, b"\0") + content.content[9_000:], content.size)
        for content in found
        if not content.content[2_048:8_704].strip(b"\0")
    ]


def test_a_disk_that_ignores_syncs_keeps_all_pending() -> None:
    deaf = without_syncs(RUN, lambda path: path == "f")
    assert [step.operation for step in deaf].count(Sync(1)) == 0
    told = [state for state in states(deaf, seed=3) if state.told]
    assert Content(b"", 0) in contents(told)
