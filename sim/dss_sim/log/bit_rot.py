"""Flips bits in files, and tells which frames are hit. Invariant: one bit at a time."""

from dss_core.frame import HEADER_BYTES as FRAME_HEADER_BYTES
from dss_sim.log.acts import Rot
from dss_sim.log.ledger import FrameHit, Rotten
from dss_sim.log.power_cycle import PowerCycle
from dss_sim.power_loss import operations
from dss_sim.power_loss.operations import Step
from dssd.log.segment.file import HEADER_BYTES, QUARANTINE, SEGMENT_SUFFIX, parse_name
from dssd.log.segment.frame_scan import FoundFrame, scan_bytes


def rot(cycle: PowerCycle, act: Rot) -> None:
    """Flip a bit in one of the files, if there are any with bytes."""
    files = sorted(path for path in cycle.root.rglob("*") if path.is_file() and path.stat().st_size)
    if not files:
        return
    path = files[act.file % len(files)]
    content = bytearray(path.read_bytes())
    offset = int(act.share * len(content))
    segment = parse_name(path)
    is_segment = path.suffix == SEGMENT_SUFFIX and QUARANTINE not in path.parts
    if segment is not None and is_segment:
        bodies = {frame.body: frame for frame in cycle.ledger.frames.values()}
        for item in scan_bytes(bytes(content[HEADER_BYTES:]), segment.storage_topic_id):
            if not isinstance(item, FoundFrame):
                continue
            at = HEADER_BYTES + item.position
            if at <= offset < at + len(item.frame):
                number = bodies[item.frame[FRAME_HEADER_BYTES:]].number
                cycle.tell(FrameHit(number, in_header=offset < at + FRAME_HEADER_BYTES))
    cycle.tell(Rotten(path.name))
    content[offset] ^= 1 << act.bit
    with path.open("r+b") as file:
        file.write(content)
    at = len(cycle.steps)
    named = str(path.relative_to(cycle.root))
    cycle.steps.append(Step(operations.Rot(named, offset, act.bit), at, at))
