"""What must hold inside the machines after every step, whatever came before.

These look at states that no observer outside sees; what observers see is judged by the `Checker`.
"""

from dssd.core.delivery import DeliveryWindow
from dssd.core.lending import HELD
from dssd.core.membership import Leader, LeaderState
from dssd.testing.simulation.checker import Violation


def check_leader(leader: Leader) -> None:
    """S1: each stream that is held has one holder, a member, and both books say the same.

    Raises:
        Violation: they do not.
    """
    if leader.state is not LeaderState.LEADING:
        return
    held = {stream: lent.holder for stream, lent in leader.streams.items() if lent.state in HELD}
    books = 0
    for borrower_id, member in leader.members.items():
        books += len(member.streams)
        for stream in member.streams:
            if held.get(stream) != borrower_id:
                raise Violation("S1", f"{stream} is in the books of a member that does not hold it")
    if books != len(held):
        raise Violation("S1", "a stream is held by nobody the leader knows")


def check_window(window: DeliveryWindow, frame_records_max: int) -> None:
    """S12: credit is never negative, and what is out exceeds it by less than one frame.

    Raises:
        Violation: it does not hold.
    """
    if window.out_records < 0 or window.out_bytes < 0:
        raise Violation("S12", "more credit came back than was spent")
    if window.out_records >= window.credit_records + frame_records_max:
        raise Violation("S12", f"{window.out_records} records are out")
