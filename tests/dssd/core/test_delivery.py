"""Inputs and effects of the delivery window, without a loop or a log."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from dss_core.ids import StreamId
from dss_core.progress import Progress, Range, Ranges, complement, covers, total
from dssd.core.delivering import (
    AnswerSettled,
    AskRevoke,
    ChunkRead,
    Closing,
    Deliver,
    DeliveryEffect,
    DeliveryInput,
    Draining,
    Dropped,
    Grown,
    Installed,
    Left,
    Nak,
    Read,
    RefuseGrant,
    RefuseRange,
    Report,
    Resumed,
    RevokeAsked,
    RevokeFinished,
    Saved,
    Settle,
    ShowStalled,
    Suspended,
    Ticked,
)
from dssd.core.delivery import DeliveryWindow
from dssd.core.messages import Attempts, GrantedStream, StreamReport
from dssd.core.run_plan import FrameSpan

ACK_WAIT_MS = 30_000


def frame(base: int, records: int, size: int = 100) -> bytes:
    head = f"{base},{records};".encode()
    return head + b"." * (size - len(head) - 1) + b"|"


def cut(frames: bytes) -> Sequence[FrameSpan]:
    spans: list[FrameSpan] = []
    at = 0
    while at < len(frames):
        end = frames.index(b"|", at) + 1
        base, records = frames[at : frames.index(b";", at)].split(b",")
        spans.append(FrameSpan(at, end, int(base), int(records)))
        at = end
    return spans


class Stream:
    """A log of one stream: frames of given sizes, some records masked by a filter."""

    def __init__(self, sizes: Sequence[int], mask: Ranges = (), start: int = 0) -> None:
        self.frames: list[tuple[int, int]] = []
        self.end = 0
        self.mask = mask
        self.start = start
        self.per_read = 3
        for size in sizes:
            self.append(size)

    def append(self, records: int) -> None:
        self.frames.append((self.end, records))
        self.end += records

    def read(self, read: Read) -> ChunkRead:
        at = max(read.offset, self.start)
        found = [f for f in self.frames if f[0] + f[1] > at][: self.per_read]
        if not found:
            end = max(read.offset, self.start)
            return ChunkRead(read.grant, read.offset, b"", (), 0, end, end)
        base, end = found[0][0], found[-1][0] + found[-1][1]
        skipped = [(base, at)] if base < at else []
        mask = (*skipped, *((max(a, at), b) for a, b in self.mask if b > at and a < end))
        clipped = tuple((a, min(b, end)) for a, b in mask if a < min(b, end))
        frames = b"".join(frame(b, n) for b, n in found)
        return ChunkRead(read.grant, read.offset, frames, clipped, end - base, base, end)


class Client:
    """Feeds a window, answers its reads, keeps what it sent."""

    def __init__(self, records: int = 1_000, size: int = 1 << 20) -> None:
        self.window = DeliveryWindow(cut, credit_records=records, credit_bytes=size)
        self.now_ms = 0
        self.streams: dict[int, Stream] = {}
        self.delivered: list[Deliver] = []
        self.reports: dict[int, StreamReport] = {}
        self.others: list[DeliveryEffect] = []

    def install(
        self,
        grant: int,
        stream: Stream,
        *,
        subscription: int = 1,
        progress: Progress | None = None,
        frontier: int = 0,
        attempts: Attempts = (),
        suspect_end: int = 0,
        ack_wait_ms: int = ACK_WAIT_MS,
    ) -> None:
        self.streams[grant] = stream
        granted = GrantedStream(
            StreamId(1, grant), 1, progress or Progress(0), frontier, attempts, suspect_end
        )
        self.feed(Installed(grant, subscription, granted, ack_wait_ms))

    def feed(self, *inputs: DeliveryInput) -> None:
        todo = list(inputs)
        while todo:
            for effect in self.window.step(todo.pop(0), self.now_ms):
                match effect:
                    case Read(grant):
                        todo.append(self.streams[grant].read(effect))
                    case Deliver():
                        self.delivered.append(effect)
                    case Report(reports):
                        self.others.append(effect)
                        self.reports.update(dict(reports))
                    case _:
                        self.others.append(effect)

    def tick(self, by_ms: int) -> None:
        until_ms = self.now_ms + by_ms
        while self.window.wake_at_ms is not None and self.window.wake_at_ms <= until_ms:
            self.now_ms = max(self.now_ms, self.window.wake_at_ms)
            self.feed(Ticked())
        self.now_ms = until_ms

    def take(self) -> list[tuple[Ranges, bool, int]]:
        """What came since the last call: (offsets for the user, redelivered, attempt)."""
        taken = [(offsets(each), each.redelivered, each.attempt) for each in self.delivered]
        self.delivered.clear()
        return taken

    def take_others(self) -> list[DeliveryEffect]:
        taken = [each for each in self.others if not isinstance(each, Report)]
        self.others.clear()
        return taken


def offsets(delivery: Deliver) -> Ranges:
    spans = cut(delivery.frames)
    return complement(delivery.mask, spans[0].base, spans[-1].base + spans[-1].records)


def test_new_records_are_sent_in_order_up_to_the_credit() -> None:
    client = Client(records=30)
    client.install(1, Stream([10, 10, 10, 10]))
    assert client.take() == [(((0, 30),), False, 1)]
    client.feed(Settle(1, ((0, 10),), frontier=10))
    assert client.take() == [(((30, 40),), False, 1)]


def test_credit_cuts_between_frames_and_never_inside_one() -> None:
    client = Client(records=25)
    client.install(1, Stream([10, 10, 10]))
    assert client.take() == [(((0, 20),), False, 1)]
    client.feed(Settle(1, ((0, 4),), frontier=4))
    assert client.take() == []
    client.feed(Settle(1, ((4, 5),), frontier=5))
    assert client.take() == [(((20, 30),), False, 1)]


def test_a_frame_larger_than_the_credit_goes_when_nothing_else_is_out() -> None:
    client = Client(records=10)
    client.install(1, Stream([5, 50, 5]))
    assert client.take() == [(((0, 5),), False, 1)]
    client.feed(Settle(1, ((0, 4),), frontier=4))
    assert client.take() == []
    client.feed(Settle(1, ((4, 5),), frontier=5))
    assert client.take() == [(((5, 55),), False, 1)]
    client.feed(Settle(1, ((5, 54),), frontier=54))
    assert client.take() == [(((55, 60),), False, 1)]


def test_credit_in_bytes_bounds_what_is_out() -> None:
    client = Client(size=250)
    client.install(1, Stream([1, 1, 1, 1]))
    assert client.take() == [(((0, 2),), False, 1)]
    client.feed(Settle(1, ((0, 1),)))
    assert client.take() == [(((2, 3),), False, 1)]


def test_streams_take_turns() -> None:
    client = Client(records=40)
    client.install(1, Stream([10] * 9))
    client.install(2, Stream([10] * 9))
    client.take()
    client.feed(Settle(1, ((0, 30),)))
    by_grant = {each.grant for each in client.delivered}
    assert 2 in by_grant


def test_a_subscription_takes_at_most_half_while_another_waits() -> None:
    client = Client(records=40)
    hungry, other = Stream([10] * 90), Stream([10] * 90)
    client.install(1, hungry, subscription=1)
    client.install(2, other, subscription=2)
    first = client.delivered[0]
    assert first.grant == 1
    client.take()
    settled = {1: 0, 2: 0}
    for _ in range(20):
        for grant in (1, 2):
            out = settled[grant] + 10
            client.feed(Settle(grant, ((settled[grant], out),)))
            settled[grant] = out
    per_grant = {1: 0, 2: 0}
    for delivery in client.delivered:
        per_grant[delivery.grant] += total(offsets(delivery))
    assert abs(per_grant[1] - per_grant[2]) <= 40


def test_a_stream_at_its_end_waits_until_it_grows() -> None:
    client = Client()
    stream = Stream([])
    client.install(1, stream)
    assert client.take() == []
    stream.append(3)
    client.feed(Grown(1))
    assert client.take() == [(((0, 3),), False, 1)]


def test_growth_during_a_read_that_finds_nothing_is_not_missed() -> None:
    window = DeliveryWindow(cut)
    granted = GrantedStream(StreamId(1, 0), 1, Progress(0), 0, (), 0)
    [read] = window.step(Installed(1, 1, granted, ACK_WAIT_MS), 0)
    assert isinstance(read, Read)
    assert window.step(Grown(1), 0) == []
    assert window.step(ChunkRead(1, 0, b"", (), 0, 0, 0), 0) == [read]


def test_records_that_the_filter_rejects_count_as_acked() -> None:
    client = Client()
    client.install(1, Stream([4, 4], mask=((0, 2), (5, 6))))
    assert client.take() == [(((2, 5), (6, 8)), False, 1)]
    client.feed(Settle(1, ((2, 5), (6, 8)), frontier=8))
    client.tick(10)
    assert client.reports[1].progress == Progress(8)


def test_records_lost_to_retention_count_as_acked() -> None:
    client = Client()
    client.install(1, Stream([4, 4], start=4))
    assert client.take() == [(((4, 8),), False, 1)]
    client.tick(10)
    assert client.reports[1].progress == Progress(4)


def test_a_nak_brings_the_record_again_after_a_second_then_two() -> None:
    client = Client()
    client.install(1, Stream([4]))
    client.take()
    client.feed(Settle(1, ((0, 1),), (Nak(1, 2),), frontier=4))
    client.tick(999)
    assert client.take() == []
    client.tick(1)
    assert client.take() == [(((1, 2),), True, 2)]
    client.feed(Settle(1, naks=(Nak(1, 2),)))
    client.tick(1_999)
    assert client.take() == []
    client.tick(1)
    assert client.take() == [(((1, 2),), True, 3)]


def test_a_nak_with_a_delay_of_nothing_brings_it_at_once() -> None:
    client = Client()
    client.install(1, Stream([2]))
    client.take()
    client.feed(Settle(1, naks=(Nak(0, 1, 0),), frontier=1))
    assert client.take() == [(((0, 1),), True, 2)]


def test_a_nak_of_what_was_not_handed_out_is_not_charged_but_marked() -> None:
    client = Client()
    client.install(1, Stream([2]))
    client.take()
    client.feed(Settle(1, naks=(Nak(0, 2),), frontier=0))
    client.tick(1_000)
    assert client.take() == [(((0, 2),), True, 1)]


def test_the_ack_wait_counts_from_the_hand_out() -> None:
    client = Client()
    client.install(1, Stream([4]))
    client.take()
    client.tick(ACK_WAIT_MS * 3)
    assert client.take() == []
    client.feed(Settle(1, frontier=2))
    client.tick(ACK_WAIT_MS - 1)
    assert client.take() == []
    client.tick(1)
    assert client.take() == []
    client.tick(1_000)
    assert client.take() == [(((0, 2),), True, 2)]


def test_in_progress_begins_the_ack_wait_anew() -> None:
    client = Client()
    client.install(1, Stream([2]))
    client.feed(Settle(1, frontier=2))
    client.take()
    client.tick(ACK_WAIT_MS - 100)
    client.feed(Settle(1, in_progress=((0, 1),)))
    client.tick(2_000)
    assert client.take() == [(((1, 2),), True, 2)]
    client.feed(Settle(1, ((1, 2),)))
    client.tick(ACK_WAIT_MS)
    assert client.take() == [(((0, 1),), True, 2)]


def test_a_late_ack_of_a_resting_record_is_taken() -> None:
    client = Client()
    client.install(1, Stream([2]))
    client.feed(Settle(1, naks=(Nak(0, 1),), frontier=2))
    client.take()
    client.feed(Settle(1, ((0, 2),)))
    client.tick(5_000)
    assert client.take() == []
    assert client.reports[1].progress == Progress(2)


def test_what_was_handed_out_before_is_marked_and_halved() -> None:
    client = Client(records=8)
    client.install(1, Stream([8, 8]), progress=Progress(0), frontier=8)
    assert client.take() == [(((0, 4),), True, 2)]
    client.feed(Settle(1, ((0, 4),), frontier=4))
    assert client.take() == [(((4, 8),), True, 2)]
    client.feed(Settle(1, ((4, 8),), frontier=8))
    assert client.take() == [(((8, 16),), False, 1)]


def test_a_record_blamed_often_goes_alone() -> None:
    client = Client(records=8)
    client.install(1, Stream([8]), frontier=8, attempts=((2, 3, 5),))
    assert client.take() == [(((0, 2),), True, 2)]
    client.feed(Settle(1, ((0, 2),), frontier=2))
    assert client.take() == [(((2, 3),), True, 6)]
    client.feed(Settle(1, frontier=3))
    assert client.take() == []
    assert client.window.step(Closing(), 0) == [
        Report(
            (
                (
                    1,
                    StreamReport(
                        StreamId(1, 1), 1, Progress(2), 8, attempts=((2, 3, 6),), sent=3
                    ),
                ),
            )
        )
    ]


def test_perhaps_handed_out_is_marked_without_being_charged() -> None:
    client = Client()
    client.install(1, Stream([8]), suspect_end=3)
    assert client.take() == [(((0, 3),), True, 1), (((3, 8),), False, 1)]


def test_acked_ranges_of_the_grant_are_masked() -> None:
    client = Client()
    client.install(1, Stream([8]), progress=Progress(1, ((3, 5),)), frontier=0)
    assert client.take() == [(((1, 3), (5, 8)), False, 1)]


def test_prefetched_records_are_not_charged() -> None:
    client = Client()
    client.install(1, Stream([8]))
    client.feed(Settle(1, frontier=1))
    client.feed(Closing())
    report = client.reports[1]
    assert (report.progress, report.frontier, report.sent) == (Progress(0), 1, 8)
    assert report.attempts == ()


def test_a_wrong_ack_is_refused_and_changes_nothing() -> None:
    client = Client()
    client.install(1, Stream([4]), progress=Progress(2))
    client.take()
    for wrong in ((0, 3), (3, 5), (3, 3), (4, 3)):
        client.feed(Settle(1, (wrong,)))
        assert client.take_others() == [RefuseRange(1, *wrong)]
    client.feed(Settle(9, ((0, 1),)))
    assert client.take_others() == [RefuseGrant(9)]
    client.tick(10)
    assert 1 not in client.reports or client.reports[1].progress == Progress(2)


def test_a_synchronous_ack_is_answered_when_it_is_durable() -> None:
    client = Client()
    client.install(1, Stream([4]))
    client.install(2, Stream([4]))
    client.take()
    client.feed(Settle(1, ((1, 2),), token=7))
    client.feed(Settle(2, ((0, 4),), token=7))
    client.feed(Saved(1, Progress(0)))
    client.feed(Saved(2, Progress(4)))
    assert client.take_others() == []
    client.feed(Saved(1, Progress(0, ((1, 3),))))
    assert client.take_others() == [AnswerSettled(7)]


def test_a_synchronous_ack_of_a_grant_that_ends_is_refused() -> None:
    client = Client()
    client.install(1, Stream([4]))
    client.feed(Settle(1, ((0, 1),), token=7))
    client.feed(Dropped(1))
    assert client.take_others() == [RefuseGrant(1)]


def test_a_revoke_waits_for_the_client_and_reports_finally() -> None:
    client = Client()
    client.install(1, Stream([4, 4]))
    client.feed(Settle(1, frontier=3))
    client.take()
    client.feed(RevokeAsked(1, 10_000))
    assert client.take_others() == [AskRevoke(1, 10_000)]
    client.feed(Settle(1, ((0, 2),), token=5, frontier=3))
    client.feed(RevokeFinished(1))
    assert client.reports[1] == StreamReport(StreamId(1, 1), 1, Progress(2), 3)
    assert client.window.out_records == 0
    client.feed(Settle(1, ((2, 3),)))
    assert client.take_others() == [RefuseGrant(1)]
    client.feed(Dropped(1, durable=True))
    assert client.take_others() == [AnswerSettled(5)]


def test_a_revoke_that_the_client_does_not_answer_is_reported_before_its_deadline() -> None:
    client = Client()
    client.install(1, Stream([4]))
    client.feed(RevokeAsked(1, 10_000))
    client.tick(9_999)
    assert client.reports[1].sent == 4
    assert client.take() == [(((0, 4),), False, 1)]


def test_nothing_comes_again_while_a_stream_is_revoked() -> None:
    client = Client()
    client.install(1, Stream([4]))
    client.feed(Settle(1, naks=(Nak(0, 1),), frontier=4))
    client.take()
    client.feed(RevokeAsked(1, 10_000))
    client.feed(Settle(1, naks=(Nak(1, 2, 0),)))
    client.tick(5_000)
    assert client.take() == []


def test_a_suspended_subscription_gets_nothing_until_it_resumes() -> None:
    client = Client(records=4)
    client.install(1, Stream([4, 4]))
    client.take()
    client.feed(Suspended(1), Settle(1, ((0, 4),)))
    assert client.take() == []
    client.feed(Resumed(1))
    assert client.take() == [(((4, 8),), False, 1)]


def test_leaving_a_subscription_reports_its_grants_finally() -> None:
    client = Client()
    client.install(1, Stream([4]), subscription=1)
    client.install(2, Stream([4]), subscription=2)
    client.feed(Settle(1, ((0, 1),), frontier=2))
    client.take_others()
    client.feed(Left(1))
    assert client.others == [
        Report(((1, StreamReport(StreamId(1, 1), 1, Progress(1), 2, sent=4)),), final=True)
    ]


def test_draining_learns_how_far_the_client_handed_out() -> None:
    client = Client()
    client.install(1, Stream([4]))
    client.feed(Draining(2_000))
    assert not client.window.drained
    client.feed(Settle(1, ((0, 1),), frontier=2), RevokeFinished(1))
    assert client.window.drained
    client.feed(Closing())
    assert client.reports[1] == StreamReport(StreamId(1, 1), 1, Progress(1), 2, sent=2)


def test_at_the_cap_of_acked_ranges_the_stream_pauses_and_shows_it() -> None:
    client = Client(records=1_000)
    client.install(1, Stream([1] * 5_000))
    at = 0
    for _ in range(100):
        fresh = [r for ranges, _, _ in client.take() for r in ranges]
        if not fresh:
            break
        every = [o for low, high in fresh for o in range(low, high)]
        acks = tuple((o, o + 1) for o in every if o % 2)
        naks = tuple(Nak(o, o + 1, 3_600_000) for o in every if o % 2 == 0)
        at = max(at, every[-1] + 1)
        client.feed(Settle(1, acks, naks, frontier=at))
    assert at < 5_000
    client.tick(10)
    assert len(client.reports[1].progress.ranges) <= 1_024
    assert ShowStalled(1, 1, True, 0) in client.take_others()


def test_a_client_that_stops_reading_costs_at_most_its_credit_and_a_few_chunks() -> None:
    window = DeliveryWindow(cut, credit_records=10)
    reads: list[Read] = []
    for grant in range(1, 100):
        granted = GrantedStream(StreamId(1, grant), 1, Progress(0), 0, (), 0)
        effects = window.step(Installed(grant, 1, granted, ACK_WAIT_MS), 0)
        reads += [each for each in effects if isinstance(each, Read)]
    stream = Stream([10] * 10)
    sent = 0
    while reads:
        for effect in window.step(stream.read(reads.pop()), 0):
            if isinstance(effect, Read):
                reads.append(effect)
            elif isinstance(effect, Deliver):
                sent += total(offsets(effect))
        assert len(reads) <= 4
    assert sent == 10


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
