"""A run: lives on one disk, and a judgement of some of the crashes that it may suffer.

Invariant: a run follows from its plan. It ends with the first violation.
"""

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from random import Random

from dss_sim.log.acts import Kill, Numbered, Plan, PowerLoss, Probe, Stop
from dss_sim.log.adoptions import planned
from dss_sim.log.clock import Clock, ClockDraws
from dss_sim.log.life import Life
from dss_sim.log.power_cycle import PowerCycle
from dss_sim.log.rules import Violation
from dss_sim.power_loss.crashes import Crash
from dss_sim.power_loss.image import Image
from dss_sim.power_loss.image_files import fast_directory, read_image
from dss_sim.power_loss.recovery_check import vanished
from dssd.log.segment.file import parse_name

STATES = 5
"""How many crashes of a run are judged, besides those after which its lives go on."""
POWER_LOSS_STEPS = 40
"""In most runs the power goes at most this many steps before the end of a life."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run broke a rule."""

    cycle: int
    crash: Crash | None
    """The crash whose start was judged; None in the run's own lives."""
    last: tuple[str, ...] = ()
    """How many steps came before."""


@dataclass(slots=True)
class Outcome:
    """The outcome of a run."""

    plan: Plan
    violations: list[Violation] = field(default_factory=list)
    where: Place | None = None
    lives: int = 0
    steps: int = 0
    states: int = 0
    digest: str = ""
    """A digest of all steps and facts: runs with equal digests are the same."""

    @property
    def violation(self) -> Violation | None:
        """The first violation."""
        return self.violations[0] if self.violations else None


def run_seed(seed: int, states: int = STATES) -> Outcome:
    """The run of a seed."""
    return run(planned(seed), states)


def run(plan: Plan, states: int = STATES) -> Outcome:
    """Live the plan; then judge this many crashes that could have happened."""
    with fast_directory() as directory:
        return _Run(plan, states, directory).whole()


class _Run:
    def __init__(self, plan: Plan, states: int, directory: Path) -> None:
        self._plan = plan
        self._states = states
        self._directory = directory
        self._outcome = Outcome(plan)
        self._digest = blake2b(digest_size=8)
        self._cycles = 0

    def whole(self) -> Outcome:
        """All of it."""
        acts = deque(self._plan.acts)
        cycle = PowerCycle(self._directory / "run", Clock(self._plan.begins_us)).begin()
        while True:
            following = self._lived(cycle, acts)
            self._note(cycle)
            if not self._outcome.violations:
                self._judge_some(cycle)
            if following is None or self._outcome.violations:
                break
            cycle = following.begin()
            self._cycles += 1
        self._outcome.digest = self._digest.hexdigest()
        return self._outcome

    def _lived(self, cycle: PowerCycle, acts: deque[Numbered]) -> PowerCycle | None:
        """Live until the power goes; returns what lies there then. None after the last act."""
        began = 0
        while acts:
            if isinstance(acts[0].act, Kill):
                acts.popleft()
            elif isinstance(acts[0].act, PowerLoss):
                numbered = acts.popleft()
                following = self._without_power(cycle, numbered, began)
                if following is not None:
                    return following
            else:
                began = len(cycle.steps)
                life = Life(
                    cycle, self._plan.settings, f"{self._plan.seed} life {self._outcome.lives}"
                )
                life.live(acts)
                self._outcome.lives += 1
                if self._broken(life.violations, None, cycle):
                    return None
        return None

    def _without_power(
        self, cycle: PowerCycle, numbered: Numbered, began: int
    ) -> PowerCycle | None:
        """What follows if the power goes among the last steps."""
        if not cycle.steps:
            return None
        chance = Random(f"{self._plan.seed} power {numbered.number}")
        assert isinstance(numbered.act, PowerLoss)
        first = max(began, len(cycle.steps) - POWER_LOSS_STEPS)
        place = len(cycle.steps) - int(numbered.act.share * (len(cycle.steps) - first))
        [(crash, image)] = cycle.crashes_after([place], chance)
        return cycle.crashed(crash, image, cycle.root, chance)

    def _note(self, cycle: PowerCycle) -> None:
        cycle.check_complete()
        self._outcome.steps += len(cycle.steps)
        self._digest.update(repr((cycle.steps, cycle.facts)).encode())

    # Crashes that might have been

    def _judge_some(self, cycle: PowerCycle) -> None:
        chance = Random(f"{self._plan.seed} states {self._cycles}")
        if not cycle.steps:
            return
        count = min(self._states, len(cycle.steps))
        places = chance.sample(range(1, len(cycle.steps) + 1), count)
        for crash, image in cycle.crashes_after(places, chance):
            crashed = cycle.crashed(crash, image, self._directory / "crashed", chance)
            self._outcome.states += 1
            violations = self._judged(crashed, image, f"{self._plan.seed} {crash.after}")
            if self._broken(violations, crash, cycle):
                return

    def _judged(self, cycle: PowerCycle, image: Image, seed: str) -> list[Violation]:
        """Start and be killed; start again, use the log, stop; start once more."""
        cycle.begin()
        clock = ClockDraws(seed)
        for number, acts in enumerate(((), (Probe(), Stop()), ())):
            cycle.jump(clock.jump_us() or 0)
            life = Life(cycle, self._plan.settings, f"{seed} {number}")
            life.live(deque(Numbered(*one) for one in enumerate(acts)))
            if number == 0:
                untrimmed = life.topics - {at.storage_topic_id for at in cycle.ledger.starts_max}
                life.violations += _vanished(image, untrimmed, cycle.root)
            elif life.reports and not cycle.ledger.rotten:
                life.violations.append(Violation("settled", f"start {number}: {life.reports}"))
            if life.violations:
                return life.violations
        return []

    def _broken(
        self, violations: Sequence[Violation], crash: Crash | None, cycle: PowerCycle
    ) -> bool:
        if not violations:
            return False
        self._outcome.violations = list(violations)
        after = len(cycle.steps) if crash is None else crash.after
        last = tuple(f"{step.operation!s:.160}" for step in cycle.steps[max(0, after - 8) : after])
        self._outcome.where = Place(self._cycles, crash, last)
        return True


def _vanished(before: Image, topics: Collection[int], root: Path) -> list[Violation]:
    """Files with bad bytes that a start deleted, of topics that must be complete."""
    kept = {
        path: file
        for path, file in before.files.items()
        if (segment := parse_name(Path(path))) is not None and segment.storage_topic_id in topics
    }
    found = vanished(Image(kept, before.directories), read_image(root))
    return [Violation("files", text) for text in found]
