from dss_bulk.audits.origins import Origins
from dss_bulk.audits.partial import Amount, Check, Found, Partial
from dss_bulk.audits.report import report_of
from dss_bulk.audits.top_keys import TopKeys


def test_a_report_without_a_finding_is_clean() -> None:
    report = report_of(Partial(streams={"o/0/0": Amount(3, 9)}), {0: 1})
    assert report.is_clean
    assert (report.records, report.bytes, report.findings) == (3, 9, ())


def test_what_is_worth_a_look_is_no_problem() -> None:
    report = report_of(Partial(found={Check.LOST: Found(1), Check.TIMES: Found(2)}), {})
    assert report.is_clean
    assert [each.is_problem for each in report.findings] == [False, False]
    assert report.findings[1].sentence.startswith("2 records have an earlier time")


def test_doubled_offsets_and_doubled_origins_are_one_finding() -> None:
    partial = Partial(
        found={Check.DUPLICATES: Found(1, ("o/0/0@1 is there twice",))},
        origins=Origins(doubles=2, doubled=(("s/0/0", 4),)),
    )
    [found] = report_of(partial, {}).findings
    assert (found.count, found.is_problem) == (3, True)
    assert found.examples == ("o/0/0@1 is there twice", "the copy of s/0/0@4")


def test_a_stream_without_a_record_counts_in_what_is_even() -> None:
    partial = Partial(streams={"o/1/2": Amount(6, 1), "o/1/0": Amount(2, 1)})
    streams = report_of(partial, {0: 9, 1: 4}).streams
    assert [each.stream for each in streams] == ["o/1/0", "o/1/1", "o/1/2", "o/1/3"]
    assert [each.of_mean for each in streams] == [1, 0, 3, 0]
    assert streams[2].share == 0.75


def test_keys_come_by_their_records_with_what_is_not_known_of_them() -> None:
    keys = TopKeys({1: 2, 2: 5}, {1: b"a", 2: b"b"}, short=1)
    partial = Partial(streams={"o/0/0": Amount(10, 0)}, keys=keys)
    found = report_of(partial, {0: 1}).keys
    assert [(each.key, each.records, each.records_max) for each in found] == [
        (b"b", 5, 6),
        (b"a", 2, 3),
    ]
    assert found[0].share == 0.5


def test_what_is_not_known_is_said() -> None:
    partial = Partial(origins=Origins(unexamined=2), apart=frozenset({("o/0/0", "s/0/0")}))
    [found] = report_of(partial, {}).findings
    assert (found.check, found.count, found.is_problem) == (Check.UNEXAMINED, 2, False)
    assert "2 copies" in " ".join(found.examples)
    assert "o/0/0" in " ".join(found.examples)
