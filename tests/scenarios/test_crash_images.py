"""Power loss at every point of a real run: what a start makes of each state that a disk may hold.

A scripted run of the log and the store is traced; a model of a disk gives the states that a loss
of power may leave, with lost, torn and reordered writes; a start on each is held against what had
been acknowledged by then. `make test` looks at a share of the states, `make proof` at all of them.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from dss_core.errors import DataDirectoryNewer, DiskFailed, StoreDamaged
from dss_sim.power_loss.crashes import State, final_image, states, without_syncs
from dss_sim.power_loss.image import Content, Image
from dss_sim.power_loss.image_files import fast_directory, write_image
from dss_sim.power_loss.operations import Step, Tell
from dss_sim.power_loss.promises import Promises
from dss_sim.power_loss.recovery_check import check, vanished
from dss_sim.power_loss.traced_lives import recorded
from dssd.store import reserve
from support.proof_share import share

pytestmark = [
    pytest.mark.needs_strace,
    pytest.mark.slow("a start for each state"),
]

SHARE = share(0.0005, 1.0)
"""Of the states, those that are looked at."""
SEED = 1
STATES_MIN = 5_000
"""Distinct states of one run, all together."""
RECOVERIES = share(1, 60)
"""How many of the states get a start that loses power in its turn."""
RECOVERY_SHARE = min(1.0, 4 * SHARE)
THOROUGH_EVERY = 8
"""Of how many starts one goes on to write, stops, and starts again."""
BLIND_STEPS, BLIND_SHARE = 400, share(0.01, 0.1)
"""Of a disk that ignores syncs, how much is looked at: ever more is pending on it."""
FLIPS = share(15, 60)
TRIES = 20
STORE_FLIPS = share(25, 2_000)
STORE = "data/store.sqlite"
STORE_LOG = "data/store.sqlite-wal"
REFUSALS = tuple(
    f"it does not start: {kind.__name__}("
    # A flipped bit may also make the store one of a newer version, or one for readers only.
    for kind in (StoreDamaged, DataDirectoryNewer, DiskFailed)
)
LIVES_COUNT = share(2, 3)
"""The last of a sample has made a start after a kill, and stopped."""
LIVES = ("first", "second", "third")[:LIVES_COUNT]
UNSYNCED_LIVES = ("unsynced", "unsynced_again", "unsynced_third")[:LIVES_COUNT]
UNSYNCED_STATES_MIN = 2_000


@pytest.fixture(scope="module")
def directory() -> Iterator[Path]:
    with fast_directory() as made:
        yield made


@pytest.fixture(scope="module")
def run(directory: Path) -> list[Step]:
    root = directory / "run"
    root.mkdir()
    return recorded(root, LIVES)


@pytest.fixture(scope="module")
def unsynced_run(directory: Path) -> list[Step]:
    """Of a topic whose records are answered before they are durable."""
    root = directory / "unsynced"
    root.mkdir()
    return recorded(root, UNSYNCED_LIVES)


@pytest.fixture(autouse=True)
def small_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starts take no more room than the traced ones did; there are many of them."""
    monkeypatch.setattr(reserve, "STORE_PAGES_BYTES_KEPT", 32 << 10)
    monkeypatch.setattr(reserve, "STORE_WAL_BYTES_KEPT", 128 << 10)


async def violations_of(
    directory: Path, image: Image, told: tuple[str, ...], *, thorough: bool
) -> list[str]:
    root = directory / "found"
    write_image(image, root)
    return (await check(root, image, Promises.of(told), thorough=thorough)).violations


def described(state: State, steps: list[Step]) -> str:
    last = [f"{step.operation!s:.160}" for step in steps[: state.crash.after][-5:]]
    return "\n".join([f"after step {state.crash.after}, kept: {state.crash.how}", *last])


async def check_states(directory: Path, steps: list[Step], states_min: int) -> None:
    """Start on each state of the run that is looked at."""
    images: set[bytes] = set()
    for number, state in enumerate(states(steps, seed=SEED, share=SHARE)):
        images.add(state.image.digest())
        thorough = number % THOROUGH_EVERY == 0
        found = await violations_of(directory, state.image, state.told, thorough=thorough)
        assert not found, f"{found}\n{described(state, steps)}"
    assert len(images) >= states_min * SHARE


async def check_recoveries(directory: Path, run: list[Step]) -> None:
    """Let some starts lose power in their turn."""
    chance = Random(SEED)
    every = states(run, seed=SEED, share=RECOVERY_SHARE)
    found = [state for state in every if chance.random() < 0.5]
    root = directory / "again"
    for seed, before in enumerate(chance.sample(found, RECOVERIES)):
        write_image(before.image, root)
        steps = recorded(root, ["recover"], before.image)
        for state in states(steps, seed=seed, share=RECOVERY_SHARE, start=before.image):
            violations = await violations_of(directory, state.image, before.told, thorough=False)
            violations += vanished(before.image, state.image)
            where = f"{described(before, run)}\nthen {described(state, steps)}"
            assert not violations, f"{violations}\n{where}"


async def test_no_loss_of_power_costs_what_was_acknowledged(
    directory: Path, run: list[Step]
) -> None:
    await check_states(directory, run, STATES_MIN)


async def test_no_loss_of_power_during_a_start_costs_more(directory: Path, run: list[Step]) -> None:
    await check_recoveries(directory, run)


async def test_no_loss_of_power_gives_an_offset_that_was_seen_to_another_record(
    directory: Path, unsynced_run: list[Step]
) -> None:
    await check_states(directory, unsynced_run, UNSYNCED_STATES_MIN)


async def test_nor_does_one_during_a_start(directory: Path, unsynced_run: list[Step]) -> None:
    await check_recoveries(directory, unsynced_run)


@pytest.mark.parametrize(
    "ignored",
    [
        pytest.param(lambda path: ".seg" in path, id="segments"),
        pytest.param(lambda path: path == "data/log", id="the names of segments"),
        pytest.param(lambda path: path.endswith("-wal"), id="the log of the store"),
        pytest.param(lambda path: path == "data", id="the names of the store"),
        pytest.param(lambda path: path == "", id="the name of the data directory"),
    ],
)
async def test_a_disk_that_ignores_syncs_is_told_from_one_that_does_not(
    directory: Path, run: list[Step], ignored: Callable[[str], bool]
) -> None:
    """Else the tests above would be blind to a sync that is missing."""
    deaf = list(states(without_syncs(run[:BLIND_STEPS], ignored), seed=SEED, share=BLIND_SHARE))
    Random(SEED).shuffle(deaf)
    for state in deaf:
        if await violations_of(directory, state.image, state.told, thorough=False):
            return
    pytest.fail("no state shows it")


def life_with_several_commits_in_the_log(directory: Path) -> list[Step]:
    """How many commits lie in the store's log at the end depends on how fast the life was."""
    for number in range(TRIES):
        root = directory / f"rot{number}"
        root.mkdir()
        steps = recorded(root, LIVES[:1])
        log = final_image(steps).files.get(STORE_LOG)
        if log is not None and end_of_all_but_one(bytes(log)) > FLIPS:
            return steps
    pytest.fail("no life left several commits in the log of the store")


async def test_a_flipped_bit_in_the_log_of_the_store_is_refused_or_harmless(
    directory: Path,
) -> None:
    """SQLite alone forgets all commits from the bad frame on, without a word."""
    steps = life_with_several_commits_in_the_log(directory)
    image = final_image(steps)
    told = tuple(step.operation.text for step in steps if isinstance(step.operation, Tell))
    log = image.files[STORE_LOG]
    chance = Random(SEED)
    refused = 0
    for position in chance.sample(range(end_of_all_but_one(bytes(log))), FLIPS):
        content = bytearray(log.content)
        content[position] ^= 1 << chance.randrange(8)
        rotten = replace(image, files=image.files | {STORE_LOG: Content(bytes(content), log.size)})
        found = await violations_of(directory, rotten, told, thorough=False)
        assert all("StoreDamaged" in violation for violation in found), (position, found)
        refused += bool(found)
    assert refused


async def test_a_flipped_bit_in_a_closed_store_is_refused_or_harmless(
    directory: Path, run: list[Step]
) -> None:
    """SQLite alone takes a changed name, epoch or progress for what was written."""
    image = final_image(run)
    assert STORE_LOG not in image.files
    told = tuple(step.operation.text for step in run if isinstance(step.operation, Tell))
    store = image.files[STORE]
    written = bytes(store)
    chance = Random(SEED)
    refused = 0
    for position in chance.choices([at for at, byte in enumerate(written) if byte], k=STORE_FLIPS):
        content = bytearray(written)
        content[position] ^= 1 << chance.randrange(8)
        rotten = replace(image, files=image.files | {STORE: Content(bytes(content), store.size)})
        found = await violations_of(directory, rotten, told, thorough=False)
        refused += bool(found)
        assert all(violation.startswith(REFUSALS) for violation in found), (position, found)
    assert refused


def end_of_all_but_one(log: bytes) -> int:
    """Where the last commit but one ends: a bad last one cannot be told from an unfinished one."""
    salts, sums = log[16:24], struct.unpack_from(">2I", log, 24)
    commits = [0, 0]
    for at in range(32, len(log) - 4_120, 4_120):
        _, pages, _, _, *own = struct.unpack_from(">6I", log, at)
        sums = summed(log[at : at + 8] + log[at + 24 : at + 4_120], sums)
        # The life may have ended between the header of a frame and its page.
        if log[at + 8 : at + 16] != salts or tuple(own) != sums:
            break
        if pages:
            commits.append(at + 4_120)
    return commits[-2]


def summed(content: bytes, sums: tuple[int, int]) -> tuple[int, int]:
    """The sums of a frame, as SQLite adds them up over words in little endian."""
    one, two = sums
    for first, second in struct.iter_unpack("<2I", content):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return one, two
