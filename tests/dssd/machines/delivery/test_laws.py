"""What holds of the delivery window whatever a client does."""

from collections import Counter, deque
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from dss_core.progress import Progress, Range, Ranges, covers, normalised, total
from dssd.machines.delivery.credit import AGAIN_PART, RESERVED_PART
from dssd.machines.delivery.events import Deliver, Nak, Settle
from support.played_window import Client, Stream, offsets
from support.proof_share import share

ACK_WAIT_MS = 400
NEVER_MS = 1 << 40
GRANTS = (1, 2)


class Held:
    """What a client has of one stream: what waits in its queue, and what its user works on."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.queue: deque[int] = deque()
        self.working: set[int] = set()
        self.acked: set[int] = set()
        self.sent: Counter[int] = Counter()
        self.handed: Counter[int] = Counter()
        self.frontier = 0
        self.floor = 0

    def arrive(self, delivery: Deliver) -> None:
        for low, high in offsets(delivery):
            for offset in range(low, high):
                assert offset not in self.queue, "a second copy while the first waits"
                assert offset not in self.acked, "sent after its ack"
                assert not covers(self.stream.mask, offset)
                assert delivery.redelivered or offset not in self.sent
                assert delivery.attempt == self.handed[offset] + 1
                self.sent[offset] += 1
                self.queue.append(offset)
        assert all(self.sent[each] <= self.handed[each] + 1 for each in self.sent)

    def hand_out(self, count: int) -> Ranges:
        """Give the user so many; returns those of which the frontier does not tell."""
        before = self.frontier
        given = [self.queue.popleft() for _ in range(min(count, len(self.queue)))]
        for offset in given:
            self.handed[offset] += 1
            self.working.add(offset)
            self.frontier = max(self.frontier, offset + 1)
        return normalised((offset, offset + 1) for offset in given if offset < before)

    def settle(self, at: int, length: int, *, acked: bool) -> Ranges:
        """Some of what the user works on, or worked on before it came again."""
        live = sorted(self.working)
        if not live:
            return ()
        low = live[at % len(live)]
        chosen = [offset for offset in live if low <= offset < low + length]
        self.working.difference_update(chosen)
        if acked:
            self.acked.update(chosen)
            self.queue = deque(offset for offset in self.queue if offset not in self.acked)
        return normalised((offset, offset + 1) for offset in chosen)


class Model:
    """A client that does anything it may, with two streams, and what must hold of the window."""

    def __init__(
        self,
        sizes: Sequence[Sequence[int]],
        masks: Sequence[Ranges],
        credit: int,
        *,
        shared: bool,
        ack_wait_ms: int = ACK_WAIT_MS,
    ) -> None:
        self.credit = credit
        self.subscriptions = 1 if shared else len(GRANTS)
        self.largest = max(size for each in sizes for size in each)
        self.client = Client(records=credit)
        self.held: dict[int, Held] = {}
        for grant, own, mask in zip(GRANTS, sizes, masks, strict=True):
            self.held[grant] = Held(Stream(own, mask))
            subscription = 1 if shared else grant
            stream = self.held[grant].stream
            self.client.install(grant, stream, subscription=subscription, ack_wait_ms=ack_wait_ms)
        self.absorb()

    def absorb(self) -> None:
        for delivery in self.client.delivered:
            self.held[delivery.grant].arrive(delivery)
        self.client.delivered.clear()
        waiting = sum(len(held.queue) for held in self.held.values())
        out = self.client.window.credit.out_records
        assert waiting <= out, "credit came back for what was not handed out"
        assert out < self.out_max()
        assert self.client.take_others() == []
        for grant, held in self.held.items():
            report = self.client.reports.get(grant)
            if report is not None:
                assert report.progress.floor >= held.floor
                held.floor = report.progress.floor
                unacked = held.sent.keys() - held.acked
                assert not any(report.progress.is_acked(offset) for offset in unacked)

    def out_max(self) -> int:
        """What is out stays below: the credit, which the first one had, and what is kept."""
        count = self.subscriptions
        reserves = (count - 1) * max(1, self.credit // (RESERVED_PART * count))
        again = count * max(1, self.credit // (AGAIN_PART * count))
        frames = count * self.largest
        if not any(sent > 1 for held in self.held.values() for sent in held.sent.values()):
            return self.credit + reserves + frames
        return self.credit + reserves + again + 2 * frames

    def act(self, kind: str, grant: int, at: int, length: int) -> None:
        held = self.held[grant]
        if kind == "silence":
            self.client.tick(at * length * 100)
        elif kind == "hand":
            unsaid = held.hand_out(length)
            self.client.feed(Settle(grant, frontier=held.frontier, handed_out=unsaid))
        elif kind == "ack":
            acked = held.settle(at, length, acked=True)
            self.client.feed(Settle(grant, acked, frontier=held.frontier))
        else:
            naks = tuple(Nak(*each) for each in held.settle(at, length, acked=False))
            self.client.feed(Settle(grant, (), naks, frontier=held.frontier))
        self.absorb()

    def finish_one(self, grant: int) -> None:
        """Its user takes all that comes of one stream, and nothing of the other."""
        held = self.held[grant]
        for _ in range(1_000):
            if len(held.acked) == held.stream.end - total(held.stream.mask):
                return
            self.act("hand", grant, 0, 1_000)
            self.act("ack", grant, 0, 1_000)
            self.client.tick(10 if held.queue else 60_000)
            self.absorb()
        raise AssertionError("it waits for a subscription that nobody takes from")

    def finish(self) -> None:
        for _ in range(10_000):
            if all(
                len(held.acked) == held.stream.end - total(held.stream.mask)
                for held in self.held.values()
            ):
                break
            for grant in GRANTS:
                self.act("hand", grant, 0, 1_000)
                self.act("ack", grant, 0, 1_000)
            # What is asked for again has rested before, a minute at most.
            self.client.tick(10 if any(h.queue for h in self.held.values()) else 60_000)
            self.absorb()
        self.client.tick(1_000)
        self.absorb()
        for grant, held in self.held.items():
            assert self.client.reports[grant].progress == Progress(held.stream.end)
        assert self.client.window.credit.out_records == 0
        assert self.client.window.credit.out_bytes == 0


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
        st.sampled_from(["hand", "hand", "hand", "ack", "ack", "nak", "silence"]),
        st.sampled_from(GRANTS),
        st.integers(0, 50),
        st.integers(1, 12),
    ),
    max_size=60,
)
STRETCHES = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 4)), max_size=6)
SMALL = st.lists(st.integers(1, 3), min_size=1, max_size=30)
LARGE = st.lists(st.integers(1, 40), min_size=1, max_size=5)


@settings(max_examples=share(25, 200), deadline=None)
@given(SMALL, LARGE, st.tuples(STRETCHES, STRETCHES), st.integers(1, 20), st.booleans(), ACTIONS)
def test_every_record_is_delivered_and_acked_once_within_the_credit(
    small: list[int],
    large: list[int],
    stretches: tuple[list[Range], list[Range]],
    credit: int,
    shared: bool,
    actions: list[tuple[str, int, int, int]],
) -> None:
    sizes = (small, large)
    masks = [_mask(each, sum(own)) for each, own in zip(stretches, sizes, strict=True)]
    model = Model(sizes, masks, credit, shared=shared)
    for action in actions:
        model.act(*action)
    model.finish()


@settings(max_examples=share(25, 100), deadline=None)
@given(SMALL, LARGE, st.integers(1, 20), st.booleans(), st.integers(1, 60))
def test_a_client_that_falls_silent_gets_each_record_once_more_at_most(
    small: list[int], large: list[int], credit: int, shared: bool, handed: int
) -> None:
    model = Model((small, large), ((), ()), credit, shared=shared)
    for grant in GRANTS:
        model.act("hand", grant, 0, handed)
    for _ in range(20):
        model.act("silence", 1, 50, 12)
    for held in model.held.values():
        assert all(count <= 2 for count in held.sent.values())


@settings(max_examples=share(25, 200), deadline=None)
@given(SMALL, LARGE, st.integers(1, 20), st.sampled_from(GRANTS), ACTIONS)
def test_one_subscription_gets_all_of_its_records_whatever_the_other_does_not_take(
    small: list[int],
    large: list[int],
    credit: int,
    taken: int,
    actions: list[tuple[str, int, int, int]],
) -> None:
    model = Model((small, large), ((), ()), credit, shared=False, ack_wait_ms=NEVER_MS)
    for kind, grant, at, length in actions:
        if kind != "silence":
            model.act(kind, grant, at, length)
    model.finish_one(taken)
    model.finish()


@settings(max_examples=share(25, 200), deadline=None)
@given(SMALL, LARGE, st.integers(1, 20), st.booleans(), st.sets(st.integers(0, 30)), ACTIONS)
def test_refused_records_come_again_though_no_others_are_settled(
    small: list[int],
    large: list[int],
    credit: int,
    shared: bool,
    places: set[int],
    actions: list[tuple[str, int, int, int]],
) -> None:
    model = Model((small, large), ((), ()), credit, shared=shared, ack_wait_ms=NEVER_MS)
    for kind, grant, *rest in actions:
        if kind in ("hand", "ack"):
            model.act(kind, grant, *rest)
    for grant in GRANTS * 3:
        model.act("hand", grant, 0, 1_000)
    refused: dict[int, set[int]] = {}
    for grant, held in model.held.items():
        live = sorted(held.working)
        refused[grant] = {offset for at, offset in enumerate(live) if at in places}
        held.working -= refused[grant]
        naks = tuple(Nak(offset, offset + 1) for offset in refused[grant])
        model.client.feed(Settle(grant, (), naks, frontier=held.frontier))
    for _ in range(100):
        model.client.tick(1_000)
        model.absorb()
        for grant, held in model.held.items():
            model.act("hand", grant, 0, 1_000)
            again = held.working & refused[grant]
            held.working -= again
            held.acked |= again
            acked = normalised((offset, offset + 1) for offset in again)
            model.client.feed(Settle(grant, acked, frontier=held.frontier))
    assert all(refused[grant] <= held.acked for grant, held in model.held.items())
