"""The report of Spark's own process to the driver about a chunk: a file of JSON.

Spark commits a write in a process that is neither a task nor the driver. That process writes the
reports of the tasks that counted to a file whose name the driver drew for this write.

Invariant: an answer is there whole or not at all. If a record broke a rule, the answer is its
condition.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dss_core.errors import DssError


Refusal = Mapping[str, object]
"""A condition, as text that can be restored."""


def refusal_of(error: "DssError") -> Refusal:
    """The condition of a record that broke a rule."""
    return {"code": error.code, "fields": error.fields, "message": error.message}


def write_answer(path: Path, said: Mapping[str, object], refusals: Sequence[Refusal] = ()) -> None:
    """Write the answer for the driver."""
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps({**said, "refusals": refusals}))
    unfinished.rename(path)


def read_answer(path: Path) -> dict[str, Any]:
    """Read the report, and remove it.

    Raises:
        DssError: a record broke a rule.
    """
    from dss_core.errors.condition import from_wire

    said: dict[str, Any] = json.loads(path.read_text())
    path.unlink()
    for refusal in said["refusals"]:
        raise from_wire(**refusal)
    return said
