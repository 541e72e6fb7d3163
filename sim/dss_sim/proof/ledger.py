"""Which steps of the proof ended, and how: one file for each state of the sources.

Invariant: a step is noted once it ended, in one rename, so a kill between two steps loses nothing
and an interrupted step is run again. The fingerprint covers the commit and every change on top of
it: what was proven of other sources does not count for these.
"""

import json
import subprocess
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Ended:
    """A step that ran to its end."""

    passed: bool
    seconds: float
    said: str
    """Its last lines."""


def fingerprint(root: Path) -> str:
    """The fingerprint of the sources in a checkout: the commit, with a digest of what differs from
    it."""
    commit = _git(root, "rev-parse", "--short=12", "HEAD").strip()
    changes = _git(root, "diff", "HEAD") + _untracked(root)
    return f"{commit}-{sha256(changes.encode()).hexdigest()[:12]}" if changes else commit


def _untracked(root: Path) -> str:
    names = _git(root, "ls-files", "--others", "--exclude-standard").splitlines()
    return "".join(f"{name}\0{(root / name).read_bytes().hex()}\0" for name in sorted(names))


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(root), *arguments], check=True, capture_output=True, text=True
    ).stdout


class Ledger:
    """The steps that ended, in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._said = path.parent / "said"
        # Made before the first step, because steps keep their findings beside it.
        self._said.mkdir(parents=True, exist_ok=True)
        self.ended: dict[str, Ended] = {}
        if path.exists():
            known = json.loads(path.read_text())
            self.ended = {name: Ended(**each) for name, each in known.items()}

    def passed(self, name: str) -> bool:
        """Whether the step need not be run again."""
        return name in self.ended and self.ended[name].passed

    def keep(self, name: str, output: str) -> None:
        """Keep the whole output of a step until it is run again: the reason may be far from the
        end."""
        (self._said / f"{name}.txt").write_text(output)

    def note(self, name: str, ended: Ended) -> None:
        """Note how a step ended."""
        self.ended[name] = ended
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps({name: asdict(each) for name, each in self.ended.items()}))
        new.replace(self._path)
