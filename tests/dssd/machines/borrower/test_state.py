"""What a borrower remembers of the reports of its session."""

from dss_core.ids import StreamId
from dss_core.progress import Progress
from dssd.machines.borrower.state import HeldStream, merge_report
from dssd.machines.messages import Stall, StreamReport

STREAM = StreamId(1, 0)


def test_a_later_report_says_whether_delivery_is_stalled() -> None:
    held = HeldStream(StreamReport(STREAM, 1, Progress(0), 0))
    merge_report(held, StreamReport(STREAM, 1, Progress(3), 5, stall=Stall.UNACKED), final=False)
    assert held.report == StreamReport(STREAM, 1, Progress(3), 5, stall=Stall.UNACKED)
    merge_report(held, StreamReport(STREAM, 1, Progress(5), 5), final=False)
    assert held.report.stall is Stall.NONE
