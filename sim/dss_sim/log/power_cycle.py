"""The time between two losses of power: a disk, the steps done to it, and the facts.

Invariant: the files below the root are the initial image with the steps applied.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from dss_sim.log.clock import Clock
from dss_sim.log.journal import Journal
from dss_sim.log.ledger import ClockRead, Fact, Ledger, PowerLost
from dss_sim.power_loss.crashes import Crash, crashes, final_image
from dss_sim.power_loss.image import Image
from dss_sim.power_loss.image_files import read_image, write_image
from dss_sim.power_loss.model import Disk
from dss_sim.power_loss.operations import Step

EMPTY = Image({}, frozenset())


class NotUnderstood(AssertionError):
    """The log did something to its files that was not recorded."""


@dataclass(slots=True)
class PowerCycle:
    """Built by `begin`."""

    root: Path
    clock: Clock
    start: Image = EMPTY
    journal: Journal = field(default_factory=Journal)
    before: tuple[Fact, ...] = ()
    """The facts that were known when it began."""
    steps: list[Step] = field(default_factory=list)
    facts: list[tuple[int, Fact]] = field(default_factory=list)
    """Facts, each with the number of steps after which it was learned."""
    ledger: Ledger = field(default_factory=Ledger)

    def begin(self) -> "PowerCycle":
        """Make the files equal to the initial image."""
        write_image(self.start, self.root)
        self.ledger = Ledger.of(self.before)
        return self

    def tell(self, fact: Fact) -> None:
        """Learn a fact now."""
        self.facts.append((len(self.steps), fact))
        self.ledger.learn(fact)

    def jump(self, by_us: int) -> None:
        """Move the wall clock."""
        self.clock.jump(by_us)
        self.tell(ClockRead(self.clock.now_us))

    def check_complete(self) -> None:
        """Check that the steps explain the files.

        Raises:
            NotUnderstood: they do not.
        """
        left, model = read_image(self.root), final_image(self.steps, self.start)
        if left != model:
            differs = sorted({path for path, _ in left.files.items() ^ model.files.items()})
            raise NotUnderstood(f"files that the steps do not explain: {differs}")

    def crashed(self, crash: Crash, image: Image, root: Path, chance: Random) -> "PowerCycle":
        """The cycle that follows a crash, below another root."""
        place = crash.after
        facts = (*self.before, *(fact for at, fact in self.facts if at <= place))
        journal = self.journal.after_crash(place, chance)
        return PowerCycle(root, Clock(self.clock.now_us), image, journal, (*facts, PowerLost()))

    def crashes_after(self, places: Sequence[int], chance: Random) -> list[tuple[Crash, Image]]:
        """For each of these numbers of steps, one crash that the disk may suffer after them."""
        disk = Disk(self.start)
        wanted = set(places)
        chosen: list[tuple[Crash, Image]] = []
        for step in self.steps:
            disk.apply(step)
            if disk.steps in wanted:
                every = list(crashes(disk, step, chance)) or [
                    Crash(disk.steps, "all", disk.closed(disk.pending()))
                ]
                crash = chance.choice(every)
                chosen.append((crash, crash.image(disk)))
        return chosen
