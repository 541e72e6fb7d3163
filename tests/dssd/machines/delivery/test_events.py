"""What a client says of a grant, cut into pieces: the window is left as by the whole."""

from dssd.limits import NAK_RANGES
from dssd.machines.delivery.events import Nak, Settle, pieces_of, work_of
from support.played_window import Client, Stream

ACKED = tuple((at, at + 1) for at in range(0, 30, 3))
NAKS = tuple(Nak(at, at + 1, 5_000) for at in range(1, 30, 3))
RENEWED = tuple((at, at + 1) for at in range(2, 30, 3))
WHOLE = Settle(1, ACKED, NAKS, frontier=30, token=4, in_progress=RENEWED)


def test_a_small_settle_is_one_piece() -> None:
    assert list(pieces_of(WHOLE, work_of(WHOLE))) == [WHOLE]


def test_pieces_hold_every_range_once_and_the_token_comes_last() -> None:
    pieces = list(pieces_of(WHOLE, 4 * NAK_RANGES))
    assert all(work_of(piece) <= 4 * NAK_RANGES and piece.frontier == 30 for piece in pieces)
    assert max(len(piece.naks) for piece in pieces) == 4
    assert tuple(each for piece in pieces for each in piece.acked) == ACKED
    assert tuple(each for piece in pieces for each in piece.naks) == NAKS
    assert tuple(each for piece in pieces for each in piece.in_progress) == RENEWED
    assert [piece.token for piece in pieces] == [0] * (len(pieces) - 1) + [4]


def test_pieces_leave_the_window_as_the_whole_does() -> None:
    states = []
    for settles in ([WHOLE], list(pieces_of(WHOLE, 4))):
        client = Client(records=30)
        client.install(1, Stream([10, 10, 10]))
        client.take()
        for settle in settles:
            client.feed(settle)
        client.tick(5_000)
        states.append((client.take(), client.reports, client.window.credit.out_records))
    assert states[0] == states[1]
    assert states[0][2] == len(NAKS) + len(RENEWED)
