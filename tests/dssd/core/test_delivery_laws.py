"""What holds of the delivery window whatever a client does."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from dss_core.progress import Progress, Range, Ranges, covers, total
from dssd.core.delivering import (
    Nak,
    Settle,
)
from dssd.testing.window import Client, Stream, offsets


class Model:
    """A client that does anything it may, and what must hold of the window."""

    def __init__(self, sizes: Sequence[int], mask: Ranges, credit: int) -> None:
        self.credit = credit
        self.largest = max(sizes)
        self.mask = mask
        self.client = Client(records=credit)
        self.stream = Stream(sizes, mask)
        self.out: set[int] = set()
        self.acked: set[int] = set()
        self.seen: set[int] = set()
        self.frontier = 0
        self.floor = 0
        self.client.install(1, self.stream, ack_wait_ms=10**9)
        self.absorb()

    def absorb(self) -> None:
        for delivery in self.client.delivered:
            for low, high in offsets(delivery):
                for offset in range(low, high):
                    assert offset not in self.out, "out twice"
                    assert offset not in self.acked, "sent after its ack"
                    assert not covers(self.mask, offset)
                    assert delivery.redelivered or offset not in self.seen
                    self.out.add(offset)
                    self.seen.add(offset)
        self.client.delivered.clear()
        assert len(self.out) == self.client.window.out_records
        assert len(self.out) <= max(self.credit, self.largest)
        assert self.client.take_others() == []
        report = self.client.reports.get(1)
        if report is not None:
            assert report.progress.floor >= self.floor
            self.floor = report.progress.floor
            for offset in self.seen - self.acked:
                assert not report.progress.is_acked(offset)

    def act(self, kind: str, at: int, length: int) -> None:
        live = sorted(self.out)
        if kind == "tick":
            self.client.tick(length * 700)
        elif live:
            low = live[at % len(live)]
            high = min(low + length, live[-1] + 1)
            self.settle(kind, low, high)
        self.absorb()

    def settle(self, kind: str, low: int, high: int) -> None:
        touched = {offset for offset in self.out if low <= offset < high}
        self.frontier = max(self.frontier, high)
        if kind == "ack":
            self.acked |= touched
            # A range of offsets names resting records in it too.
            self.acked |= {offset for offset in self.seen if low <= offset < high}
            self.out -= touched
            self.client.feed(Settle(1, ((low, high),), frontier=self.frontier))
        elif kind == "nak":
            self.out -= touched
            self.client.feed(Settle(1, naks=(Nak(low, high),), frontier=self.frontier))
        else:
            self.client.feed(Settle(1, in_progress=((low, high),), frontier=self.frontier))

    def finish(self) -> None:
        for _ in range(10_000):
            if len(self.acked) == self.stream.end - total(self.mask):
                break
            live = sorted(self.out)
            if live:
                self.settle("ack", live[0], live[-1] + 1)
            else:
                self.client.tick(60_000)
            self.absorb()
        self.client.tick(1_000)
        self.absorb()
        assert self.client.reports[1].progress == Progress(self.stream.end)
        assert self.client.window.out_records == 0
        assert self.client.window.out_bytes == 0


def _mask(stretches: Sequence[Range], end: int) -> Ranges:
    ranges: list[Range] = []
    at = 0
    for gap, length in stretches:
        low = at + gap
        high = min(low + length, end)
        if low >= end:
            break
        ranges.append((low, high))
        at = high + 1
    return tuple(ranges)


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["ack", "ack", "nak", "progress", "tick"]),
        st.integers(0, 50),
        st.integers(1, 12),
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 4)), max_size=6),
    st.integers(1, 20),
    ACTIONS,
)
def test_every_record_is_delivered_and_acked_once_within_the_credit(
    sizes: list[int],
    stretches: list[Range],
    credit: int,
    actions: list[tuple[str, int, int]],
) -> None:
    model = Model(sizes, _mask(stretches, sum(sizes)), credit)
    for action in actions:
        model.act(*action)
    model.finish()
