"""Measurements of the log, for monitoring.

Invariant: counts only rise while the daemon runs; gauges may fall.
"""

from dataclasses import dataclass

from dssd.measuring.latencies import Latencies


@dataclass(frozen=True, slots=True)
class LogMeasures:
    """The present measurements."""

    appends: Latencies
    """Latencies from call to answer, of calls that reached the writer."""
    syncs: Latencies
    """Durations of file syncs that frames waited for."""
    stored_frames: int
    stored_records: int
    stored_bytes: int
    """Frames stored since the start; a repeated frame counts once."""
    queued_bytes: int
    """Bytes of frames that are not answered yet."""
    segments: int
    kept_bytes: int
    """Bytes of all segment files."""
    producers: int
    """How many producers are remembered."""
