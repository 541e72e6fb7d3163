"""The target topic of a job, as far as routing needs it: a value, which loads nothing.

Invariant: it is a part of the manifest; an edit of the topic changes no job that was made before.
"""

from dataclasses import dataclass

from dss_core.routing import Router


@dataclass(frozen=True, slots=True)
class Target:
    """The routing of the target topic."""

    router: Router
    partitions: int
    factor: int
