"""What the log tells of its own work, for whoever watches the daemon.

Invariant: counts only rise while the daemon runs; what it holds may shrink.
"""

from dataclasses import dataclass

from dssd.measuring.latencies import Latencies


@dataclass(frozen=True, slots=True)
class LogMeasures:
    """As it is now."""

    appends: Latencies
    """From a call to its answer, of those that reached the disk or its writer."""
    syncs: Latencies
    """Of files, where frames waited for them."""
    stored_frames: int
    stored_records: int
    stored_bytes: int
    """What was stored since the start; a repeated frame is stored once."""
    queued_bytes: int
    """Bytes of frames that are not answered yet."""
    segments: int
    kept_bytes: int
    """Of all segment files."""
    producers: int
    """How many producers are remembered."""
