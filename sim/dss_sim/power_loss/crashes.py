"""Which of the legal states after a loss of power are checked.

After a change: it alone, with everything pending, with everything except each other one, with
random others, and torn: only the first of its sectors, or the last. After a sync or an answer:
nothing of what is pending, all, each step alone, all except each, the first steps, any steps, any
sectors. Sizes also arrive without their bytes, and bytes without their sizes.

Invariant: deterministic by its seed; every crash is closed, so its image is legal.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from random import Random

from dss_sim.power_loss.image import Image
from dss_sim.power_loss.model import SIZE, Atom, Atoms, Disk
from dss_sim.power_loss.operations import OpenFile, Step, Sync, Tell

OTHERS_MAX = 12
"""How many pending steps are left out, or kept, one by one, at one moment."""
TEARS_MAX = 10
RANDOM_SUBSETS = 10


@dataclass(frozen=True, slots=True)
class Crash:
    """The power goes after a step, and these atoms had arrived."""

    after: int
    how: str
    kept: Atoms
    stale: bool = False

    def image(self, disk: Disk) -> Image:
        """What is found then. The disk must be at that step."""
        return disk.image(self.kept, Random(self.after) if self.stale else None)


@dataclass(frozen=True, slots=True)
class _Choice:
    """The pending atoms in ``kept`` and all that they need; or all except ``lost`` and those that
    need them."""

    how: str
    kept: Sequence[Atom] = ()
    lost: Sequence[Atom] = ()

    def atoms(self, disk: Disk) -> Atoms:
        """What had arrived."""
        if not self.lost:
            return disk.closed(self.kept)
        return disk.closed(disk.without(self.lost).union(self.kept))


Choices = Sequence[_Choice]
Steps = list[tuple[int, list[Atom]]]


def crashes(
    disk: Disk, last: Step, chance: Random, looked_at: Callable[[], bool] = lambda: True
) -> Iterator[Crash]:
    """What may be found if the power goes right after the last step, which was applied.

    Callers may look at only a few of many crashes: the others cost little.
    """
    pending = disk.pending()
    steps = [(number, list(own)) for number, own in groupby(pending, key=lambda atom: atom.step)]
    newest = [atom for atom in pending if atom.step == disk.steps]
    chosen = _after_change(disk, steps, newest, chance) if newest else []
    if not newest and not _changes_nothing(last):
        chosen = _at_rest(steps, chance)
    for choice in chosen:
        if looked_at():
            yield from _with_stale(disk, Crash(disk.steps, choice.how, choice.atoms(disk)))


def _changes_nothing(last: Step) -> bool:
    return isinstance(last.operation, OpenFile)


def _after_change(disk: Disk, steps: Steps, newest: list[Atom], chance: Random) -> Choices:
    others = [(number, own) for number, own in steps if number != disk.steps]
    everything = [atom for _, own in steps for atom in own]
    chosen = [_Choice("all", everything), _Choice("newest alone", newest)]
    for number, own in _some(others, chance):
        chosen.append(_Choice(f"all but {number}", kept=newest, lost=own))
    for _ in range(RANDOM_SUBSETS if others else 0):
        kept = [atom for _, own in others if chance.random() < 0.5 for atom in own]
        chosen.append(_Choice("newest and any", [*kept, *newest]))
    before = [atom for _, own in others for atom in own]
    return [*chosen, *_torn(before, newest, chance)]


def _torn(before: list[Atom], newest: list[Atom], chance: Random) -> Choices:
    """The newest step in part, on top of everything before it."""
    sectors = [atom for atom in newest if atom.part >= 0]
    sizes = [atom for atom in newest if atom.part == SIZE]
    chosen: list[_Choice] = []
    if sizes and sectors:
        chosen.append(_Choice("size alone", [*before, *sizes]))
        chosen.append(_Choice("bytes alone", [*before, *sectors]))
    places = range(1, len(sectors))
    for place in sorted(chance.sample(places, min(TEARS_MAX, len(places)))):
        chosen.append(_Choice(f"first {place} sectors", [*before, *sizes, *sectors[:place]]))
        chosen.append(_Choice(f"all but {place} sectors", [*before, *sizes, *sectors[place:]]))
    return chosen


def _at_rest(steps: Steps, chance: Random) -> Choices:
    everything = [atom for _, own in steps for atom in own]
    chosen = [_Choice("none"), _Choice("all", everything)]
    for number, own in _some(steps, chance):
        chosen.append(_Choice(f"{number} alone", own))
        chosen.append(_Choice(f"all but {number}", lost=own))
    places = sorted(chance.sample(range(len(steps)), min(OTHERS_MAX, len(steps))))
    chosen += [_Choice(f"first {at}", [a for _, own in steps[:at] for a in own]) for at in places]
    for _ in range(RANDOM_SUBSETS if len(steps) > 1 else 0):
        any_steps = [a for _, own in steps if chance.random() < 0.5 for a in own]
        chosen.append(_Choice("any steps", any_steps))
        chosen.append(_Choice("any atoms", [a for a in everything if chance.random() < 0.5]))
        names = [atom for atom in everything if atom.part < SIZE]
        chosen.append(_Choice("any names", [atom for atom in names if chance.random() < 0.5]))
    return chosen


def _some(steps: Steps, chance: Random) -> Steps:
    return sorted(chance.sample(steps, min(OTHERS_MAX, len(steps))))


def _with_stale(disk: Disk, crash: Crash) -> Iterator[Crash]:
    """The crash; and once more with stale bytes if a size arrived before its bytes."""
    yield crash
    grown = {atom.file for atom in crash.kept if atom.part == SIZE}
    if not grown:
        return
    lost = {atom.file for atom in disk.pending() if atom.part >= 0 and atom not in crash.kept}
    if grown & lost:
        yield Crash(crash.after, f"{crash.how}, stale", crash.kept, stale=True)


@dataclass(frozen=True, slots=True)
class State:
    """A crash, what is found after it, and what had been told by then."""

    crash: Crash
    image: Image
    told: tuple[str, ...]


def states(
    steps: Sequence[Step], *, seed: int, share: float = 1.0, start: Image | None = None
) -> Iterator[State]:
    """Distinct states of a run, in order; a random share of them where that is below 1.

    Two states with one image are both given if more was told before the later one.
    """
    disk = Disk(start)
    chance, sample = Random(seed), Random(f"sample of {seed}")
    told: list[str] = []
    seen: set[tuple[bytes, int]] = set()
    for step in steps:
        disk.apply(step)
        if isinstance(step.operation, Tell):
            told.append(step.operation.text)
        for crash in crashes(disk, step, chance, lambda: sample.random() < share):
            image = crash.image(disk)
            state = (image.digest(), len(told))
            if state not in seen:
                seen.add(state)
                yield State(crash, image, tuple(told))


def final_image(steps: Sequence[Step], start: Image | None = None) -> Image:
    """What a process without a loss of power leaves behind."""
    disk = Disk(start)
    for step in steps:
        disk.apply(step)
    return disk.image(frozenset(disk.pending()))


def without_syncs(steps: Sequence[Step], ignored: Callable[[str], bool]) -> list[Step]:
    """The same run on a disk that ignores the syncs of files and directories of some paths.

    A check that accepts these states as those of the real run is blind.
    """
    deaf: set[int] = set()
    kept: list[Step] = []
    for step in steps:
        match step.operation:
            case OpenFile(handle, path) if ignored(path):
                deaf.add(handle)
            case Sync(handle) if handle in deaf:
                continue
        kept.append(step)
    return kept
