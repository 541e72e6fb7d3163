from dss_bulk.audits.output import GroupLag, Output
from dss_bulk.audits.partial import Amount, Check, Found, Partial
from dss_bulk.limits import AUDIT_OUTPUT_BYTES_MAX

from .test_coding import LARGE

PARTIAL = Partial({"t/0/0": Amount(3, 9)}, found={Check.GAPS: Found(1, ("t/0/0 1..1",))})


def test_what_a_chunk_leaves_comes_back() -> None:
    assert Output.from_json(Output(PARTIAL).to_json()) == Output(PARTIAL)


def test_the_whole_comes_back_with_its_groups() -> None:
    whole = Output(PARTIAL, is_whole=True, groups=(GroupLag("g@t/#", "idle", 4),))
    assert Output.from_json(whole.to_json()) == whole


def test_whatever_it_is_the_daemon_takes_it() -> None:
    groups = tuple(GroupLag(f"{'g' * 250}{each}@{'t' * 900}", "idle", each) for each in range(99))
    text = Output(LARGE, is_whole=True, groups=groups).to_json()
    assert len(text.encode()) <= AUDIT_OUTPUT_BYTES_MAX
    kept = Output.from_json(text).groups
    assert kept == groups[: len(kept)]
    assert kept
