"""One page about a proof: what ran, what it found, how long it took."""

from collections.abc import Sequence

from dss_sim.proof.ledger import Ended
from dss_sim.proof.steps import Step, kinds


def report(sources: str, steps: Sequence[Step], ended: dict[str, Ended]) -> str:
    """The page as Markdown: a row for each kind, and the last lines of each step that failed."""
    lines = [
        f"# Proof of {sources}",
        "",
        "| kind | steps | passed | failed | minutes |",
        "|---|---|---|---|---|",
        *(_row(kind, steps, ended) for kind in kinds(steps)),
    ]
    for step in steps:
        found = ended.get(step.name)
        if found is not None and not found.passed:
            command = " ".join(step.command)
            lines += ["", f"## {step.name}", "", f"`{command}`", "", "```", found.said, "```"]
    return "\n".join(lines) + "\n"


def _row(kind: str, steps: Sequence[Step], ended: dict[str, Ended]) -> str:
    mine = [step for step in steps if step.kind == kind]
    known = [ended[step.name] for step in mine if step.name in ended]
    passed = sum(each.passed for each in known)
    minutes = sum(each.seconds for each in known) / 60
    return f"| {kind} | {len(mine)} | {passed} | {len(known) - passed} | {minutes:.1f} |"
