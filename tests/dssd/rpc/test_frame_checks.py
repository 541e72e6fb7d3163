"""The gate of a topic: what it says of a frame, and what it keeps of one."""

import gc
import sys
from contextlib import suppress

import pytest

from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.errors import DssError, FrameCorrupt, SubjectOutsideTopic
from dss_core.filters import TopicFilter
from dss_core.routing import Router
from dssd.rpc.frame_checks import Gate
from dssd.topics.model import StorageTopic, Topic


def gate() -> Gate:
    part = StorageTopic(1, 0, partitions=1, factor=1, ends=None)
    patterns = (TopicFilter.parse("t/#"),)
    return Gate(Topic(1, "t", patterns, Router.BLOCK, "sync", 1, 0, (part,), None, None, 0))


def frame_about(subject: str) -> bytes:
    columns = Columns([b"x"], None, subject, None, 1)
    return build_frame(columns, partition=0, producer_id=bytes(16), sequence=0)


def refusal(asked: Gate, frame: bytes) -> DssError:
    with pytest.raises(DssError) as refused:
        asked.admit(frame, 1)
    return refused.value.with_traceback(None)


def test_a_refused_frame_is_not_kept() -> None:
    asked, frame = gate(), frame_about("elsewhere")
    before = sys.getrefcount(frame)
    for _ in range(3):
        with suppress(SubjectOutsideTopic):
            asked.admit(frame, 1)
    gc.collect()
    assert sys.getrefcount(frame) == before


def test_each_refusal_is_an_error_of_its_own_with_the_same_facts() -> None:
    asked, frame = gate(), frame_about("elsewhere")
    first, second = refusal(asked, frame), refusal(asked, frame)
    assert first is not second
    assert isinstance(first, SubjectOutsideTopic)
    facts = {"subject": "elsewhere", "topic": "t", "patterns": "t/#"}
    assert first.fields == second.fields == facts


def test_a_frame_with_owned_subjects_passes_each_time() -> None:
    asked, frame = gate(), frame_about("t/1")
    for _ in range(2):
        header, append = asked.admit(frame, 1)
        assert (header.partition, append.frame) == (0, frame)


def test_a_broken_frame_is_refused() -> None:
    assert isinstance(refusal(gate(), frame_about("t")[:-1]), FrameCorrupt)
