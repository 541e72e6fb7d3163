"""What a job writes to, as far as it routes: a value, which loads nothing.

Invariant: of the manifest; a topic that is edited changes no job that was made before.
"""

from dataclasses import dataclass

from dss_core.routing import Router


@dataclass(frozen=True, slots=True)
class Target:
    """How the topic that is written is routed."""

    router: Router
    partitions: int
    factor: int
