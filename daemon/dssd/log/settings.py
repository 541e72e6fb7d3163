"""The limits of a log: by default the daemon's; tests use smaller ones."""

import resource
from dataclasses import dataclass

from dssd import limits


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Every bound of the log that a deployment or a test may want to change."""

    segment_bytes_max: int = limits.SEGMENT_BYTES_MAX
    segment_frames_max: int = limits.SEGMENT_FRAMES_MAX
    run_bytes_max: int = limits.RUN_BYTES_MAX
    writer_queue_bytes_max: int = limits.WRITER_QUEUE_BYTES_MAX
    watermark_bytes: int = limits.WATERMARK_BYTES
    watermark_frames: int = limits.WATERMARK_FRAMES
    os_sync_s: float = limits.OS_SYNC_S
    tail_cache_bytes_max: int = limits.TAIL_CACHE_BYTES_MAX
    descriptors_max: int = limits.LOG_DESCRIPTORS_MAX
    active_descriptors_max: int = limits.LOG_ACTIVE_DESCRIPTORS_MAX
    index_blocks_max: int = limits.LOG_INDEX_BLOCKS_MAX
    read_loop_us: int = limits.READ_LOOP_US


def share_of_descriptors(wanted_max: int) -> int:
    """How many descriptors one part of the log may hold in this process; at least one."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted_max
    return max(1, min(wanted_max, soft // limits.LOG_DESCRIPTORS_SHARE))
