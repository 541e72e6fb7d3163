"""A parser under test, and a run of drawn inputs through it.

Invariant: a parser takes an input or refuses it by a named condition, within bounded time. Anything
else is found, and is met again by the same seed and number of the input.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import monotonic, process_time
from typing import NamedTuple

from dss_core.errors import DssError
from dss_sim.fuzz.mutation import changed_json, mutated

INPUT_S_MAX = 1.0
"""Of a processor, for one input. The slowest parser takes a hundredth of that for a legal one."""

EXAMPLES_MAX = 400
"""Inputs that were taken become examples, so that changes add up."""

KEEP_ONE_IN = 8


@dataclass(frozen=True, slots=True)
class Parser:
    """Something that reads what others wrote."""

    name: str
    examples: Callable[[], Sequence[bytes]]
    """Inputs that it takes."""
    parse: Callable[[bytes], object]
    refusals: tuple[type[Exception], ...] = (DssError,)
    """The named conditions that it may raise."""
    pieces: tuple[bytes, ...] = ()
    """What has a meaning to it."""
    sealed: Callable[[bytes], bytes] | None = None
    """An input with checksums that fit, as a forger would make it."""
    is_json: bool = False
    """Whether values are changed in it, too."""


class Found(NamedTuple):
    """An input that was neither taken nor refused."""

    number: int
    data: bytes
    why: str


class Ran(NamedTuple):
    """What came of a run."""

    inputs: int
    taken: int
    found: Found | None


def _nobody(_: int) -> None:
    """Nobody wants to know."""


def run(
    parser: Parser,
    seed: int,
    *,
    seconds: float = 0.0,
    inputs: int | None = None,
    at: Callable[[int], None] = _nobody,
) -> Ran:
    """Put drawn inputs through a parser, for so long, or so many, or until something is found.

    Args:
        at: is told the number of each input before the parser has it.
    """
    with TemporaryDirectory(prefix="dss-fuzz-") as folder:
        if isinstance(parser.parse, InFile):
            parser.parse.folder = Path(folder)
        return _run(parser, Random(f"{parser.name} {seed}"), seconds, inputs, at)


def _run(
    parser: Parser,
    random: Random,
    seconds: float,
    inputs: int | None,
    at: Callable[[int], None],
) -> Ran:
    examples = list(parser.examples())
    for number, example in enumerate(examples):
        parser.parse(example)  # what is wrong with these is a mistake in the parser's entry
        assert number < EXAMPLES_MAX
    ends_at, number, taken = monotonic() + seconds, 0, 0
    while number != inputs and (inputs is not None or monotonic() < ends_at):
        number += 1
        at(number)
        if parser.is_json and random.random() < 0.7:
            data = changed_json(random.choice(examples), random)
        else:
            data = mutated(examples, random, parser.pieces)
        if parser.sealed is not None and random.random() < 0.7:
            data = parser.sealed(data)
        began = process_time()
        try:
            parser.parse(data)
        except parser.refusals:
            continue
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            return Ran(number, taken, Found(number, data, f"{type(error).__name__}: {error}"))
        finally:
            took_s = process_time() - began
        if took_s > INPUT_S_MAX:
            return Ran(number, taken, Found(number, data, f"it took {took_s:.1f} s"))
        taken += 1
        if len(examples) < EXAMPLES_MAX and random.randrange(KEEP_ONE_IN) == 0:
            examples.append(data)
    return Ran(number, taken, None)


def text(read: Callable[[str], object]) -> Callable[[bytes], object]:
    """A parser of texts, which gets what bytes mean that are UTF-8, more or less."""
    return lambda data: read(data.decode(errors="replace"))


class InFile:
    """A parser of a file that only its owner may read; it lies in the folder of the run."""

    def __init__(self, read: Callable[[Path], object], name: str = "input") -> None:
        self.folder: Path | None = None
        self._read = read
        self._name = name

    def __call__(self, data: bytes) -> object:
        """Put it there, and read it."""
        assert self.folder is not None, "a run has one"
        path = self.folder / self._name
        path.touch(0o600)
        path.write_bytes(data)
        return self._read(path)
