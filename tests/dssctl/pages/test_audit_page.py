import io
import sys
from dataclasses import replace

import pytest

from dss_api.v1 import jobs_pb2
from dss_bulk.audits.origins import Origins
from dss_bulk.audits.output import GroupLag
from dss_bulk.audits.partial import Amount, Check, Found, Partial
from dss_bulk.audits.report import report_of
from dss_bulk.audits.top_keys import TopKeys
from dss_client import Job
from dssctl.pages.audit_page import audit_item, audit_verdict, bar, key_text
from support.blank_values import blank

JOB = blank(
    Job, jobs_pb2.Job, job_id=4, name="look", kind="audit", engine="local", state="done",
    source="orders", hops_max=4, chunks=3, published=3, driver="a test", created_at_ms=1,
    ended_at_ms=2,
)  # fmt: skip
EVEN = {"orders/0/0": Amount(5, 50), "orders/0/1": Amount(7, 70)}
PARTITIONS = {0: 2}


def test_a_topic_that_is_as_it_ought_to_be_is_healthy() -> None:
    verdict = audit_verdict(JOB, report_of(Partial(EVEN), PARTITIONS))
    assert verdict.health == "healthy"
    assert verdict.sentence == "12 records are all there, each once, in place and in order."


def test_problems_are_told_first_with_what_helps() -> None:
    found = {Check.TIMES: Found(1), Check.SUBJECTS: Found(2, ("x at orders/0/0@4",))}
    report = report_of(Partial(EVEN, found=found, origins=Origins(doubles=1)), PARTITIONS)
    verdict = audit_verdict(JOB, report)
    assert verdict.health == "problem"
    assert verdict.sentence.startswith("1 record is there a second time; 2 records have a subject")
    assert verdict.next == ("dssctl jobs ls --filter kind=replay", "dssctl topics describe orders")
    item = audit_item(JOB, report, ())
    findings = item["findings"]
    assert isinstance(findings, list)
    assert [each["level"] for each in findings] == ["problem", "problem", "notice"]
    assert item["problems"] == 2


def test_an_audit_that_goes_on_says_how_far_it_is() -> None:
    going = replace(JOB, state="active", published=1)
    verdict = audit_verdict(going, report_of(Partial(EVEN), PARTITIONS))
    assert (verdict.health, "so far" in verdict.sentence) == ("attention", True)
    assert audit_item(going, report_of(Partial(EVEN), PARTITIONS), ())["complete"] is False


@pytest.mark.parametrize(
    ("partial", "said"),
    [
        (Partial({"orders/0/0": Amount(5, 1)}), "orders/0/0 has 3.0 times the mean"),
        (Partial(EVEN, found={Check.LOST: Found(3)}), "3 offsets have no record since a kill"),
    ],
)
def test_what_is_no_problem_is_worth_a_look(partial: Partial, said: str) -> None:
    verdict = audit_verdict(JOB, report_of(partial, {0: 3}))
    assert verdict.health == "attention"
    assert said in verdict.sentence


def test_the_fullest_stream_and_the_largest_key_come_first() -> None:
    keys = TopKeys({1: 2, 2: 3}, {1: b"a", 2: b"\xff"}, 1)
    groups = (GroupLag("g@orders/#", "idle", 4),)
    item = audit_item(JOB, report_of(Partial(EVEN, keys=keys), PARTITIONS), groups)
    streams, found = item["streams"], item["keys"]
    assert isinstance(streams, list)
    assert isinstance(found, list)
    assert [each["stream"] for each in streams] == ["orders/0/1", "orders/0/0"]
    assert [(each["key"], each["records_max"]) for each in found] == [("\\xff", 4), ("a", 3)]
    assert item["groups"] == [{"group": "g@orders/#", "state": "idle", "lag": 4}]


@pytest.mark.parametrize(
    ("encoding", "places", "drawn"),
    [
        ("utf-8", 2.5, "██▌"),
        ("utf-8", 0.0, ""),
        ("utf-8", 99.0, "█" * 40),
        ("ascii", 2.5, "##"),
    ],
)
def test_a_bar_is_as_long_as_its_value(
    monkeypatch: pytest.MonkeyPatch, encoding: str, places: float, drawn: str
) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    assert bar(places) == drawn


def test_a_key_that_is_no_text_can_be_printed() -> None:
    assert key_text(b"caf\xc3\xa9\x00\xfe") == "café\x00\\xfe"
