from hypothesis import given
from hypothesis import strategies as st

from dss_core.progress import Ranges, clipped, complement, normalised, total
from dssd.machines.delivery.frame_plan import CreditLeft, FrameSpans, Stretch, plan

SPANS = FrameSpans(at=[0, 100, 250, 300], base=[10, 20, 35, 40])
ALL = Stretch(10, 40, redelivered=False, attempt=1, records_max=30)


def test_what_fits_goes_up_to_the_end_of_a_frame() -> None:
    planned = plan(SPANS, ((10, 40),), ALL, CreditLeft(29, 1_000))
    assert (planned.pieces, planned.size, planned.records) == (((0, 250),), 250, 25)
    assert (planned.base, planned.end, planned.mask) == (10, 35, ())


def test_bytes_bound_a_delivery_like_records() -> None:
    assert plan(SPANS, ((10, 40),), ALL, CreditLeft(100, 249)).size == 100
    assert plan(SPANS, ((10, 40),), ALL, CreditLeft(100, 250)).size == 250


def test_one_frame_goes_even_where_it_needs_more_than_is_left() -> None:
    planned = plan(SPANS, ((22, 40),), ALL, CreditLeft(1, 1))
    assert (planned.base, planned.end, planned.picked) == (20, 35, ((22, 35),))
    assert planned.mask == ((20, 22),)


def test_a_stretch_ends_a_delivery_within_a_frame() -> None:
    first = Stretch(10, 25, True, 2, 100)
    planned = plan(SPANS, ((10, 40),), first, CreditLeft(100, 1_000))
    assert (planned.picked, planned.mask, planned.attempt) == (((10, 25),), ((25, 35),), 2)


def test_a_stretch_that_is_bounded_lets_no_more_records_go() -> None:
    bounded = Stretch(10, 40, True, 3, 12)
    planned = plan(SPANS, ((10, 15), (30, 40)), bounded, CreditLeft(100, 1_000))
    assert planned.picked == ((10, 15), (30, 37))
    assert planned.mask == ((15, 30), (37, 40))


def test_a_frame_of_which_nothing_goes_is_left_out_and_masked() -> None:
    planned = plan(SPANS, ((12, 14), (36, 38)), ALL, CreditLeft(100, 1_000))
    assert (planned.pieces, planned.size) == (((0, 100), (250, 300)), 150)
    assert (planned.base, planned.end, planned.picked) == (10, 40, ((12, 14), (36, 38)))
    assert planned.mask == ((10, 12), (14, 36), (38, 40))
    assert plan(SPANS, ((12, 14), (36, 38)), ALL, CreditLeft(100, 149)).picked == ((12, 14),)


@st.composite
def asked(draw: st.DrawFn) -> tuple[FrameSpans, Ranges, CreditLeft]:
    at, base = [0], [draw(st.integers(0, 50))]
    for size, records in draw(
        st.lists(st.tuples(st.integers(1, 20), st.integers(1, 6)), min_size=1, max_size=12)
    ):
        at.append(at[-1] + size)
        base.append(base[-1] + records)
    offsets = draw(st.sets(st.integers(base[0], base[-1] - 1), min_size=1))
    if draw(st.booleans()):
        wanted: Ranges = ((min(offsets), max(offsets) + 1),)
    else:
        wanted = normalised((offset, offset + 1) for offset in offsets)
    return (
        FrameSpans(at, base),
        wanted,
        CreditLeft(draw(st.integers(1, 40)), draw(st.integers(1, 150))),
    )


def frame_by_frame(spans: FrameSpans, wanted: Ranges, room: CreditLeft) -> list[int]:
    """The frames of the delivery, found by trying each."""
    chosen: list[int] = []
    records = size = 0
    for k in range(len(spans.base) - 1):
        inside = total(clipped(wanted, spans.base[k], spans.base[k + 1]))
        records += inside
        size += spans.at[k + 1] - spans.at[k] if inside else 0
        if chosen and (records > room.records or size > room.bytes):
            break
        if inside:
            chosen.append(k)
    return chosen


@given(asked())
def test_the_frames_that_are_found_are_those_that_one_look_at_each_finds(
    given_: tuple[FrameSpans, Ranges, CreditLeft],
) -> None:
    spans, wanted, room = given_
    whole = Stretch(spans.base[0], spans.base[-1], False, 1, 1_000)
    planned = plan(spans, wanted, whole, room)
    chosen = frame_by_frame(spans, wanted, room)
    assert planned.pieces == normalised((spans.at[k], spans.at[k + 1]) for k in chosen)
    assert planned.picked == clipped(wanted, planned.base, planned.end)
    assert planned.mask == complement(planned.picked, planned.base, planned.end)
    assert planned.records == total(planned.picked) > 0
    assert planned.size == total(planned.pieces)
    assert (planned.base, planned.end) == (spans.base[chosen[0]], spans.base[chosen[-1] + 1])
