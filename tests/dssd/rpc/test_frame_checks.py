"""The gate of a topic: what it says of a frame, and what it keeps of one."""

import gc
import sys
from contextlib import suppress
from dataclasses import replace

import pytest

from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.errors import (
    DssError,
    FrameCorrupt,
    ProducerForgotten,
    StaleTopicEpoch,
    StorageTopicSealed,
    StreamNotFound,
    SubjectOutsideTopic,
)
from dss_core.filters import TopicFilter
from dss_core.routing import Router
from dssd.rpc.frame_checks import SUBJECT_MATCHES_PER_STEP, Gate, Large
from dssd.topics.model import StorageTopic, Topic


def gate(*more: str) -> Gate:
    part = StorageTopic(1, 0, partitions=1, factor=1, ends=None)
    patterns = tuple(map(TopicFilter.parse, ("t/#", *more)))
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
        admitted = asked.admit(frame, 1)
        assert not isinstance(admitted, Large)
        header, append = admitted
        assert (header.partition, append.frame) == (0, frame)


def test_a_broken_frame_is_refused() -> None:
    assert isinstance(refusal(gate(), frame_about("t")[:-1]), FrameCorrupt)


def test_nobody_tells_of_a_frame_whose_storage_topic_went_while_it_was_asked_for() -> None:
    first, second = (StorageTopic(at, at - 1, 1, 1, ends=(0,)) for at in (1, 2))
    moved = replace(gate().topic, storage_topics=(first, second), topic_epoch=2, produce_ordinal=1)
    asked = Gate(moved)
    gone, sealed = StreamNotFound(stream="1:0"), StorageTopicSealed(topic="id 1", ordinal="?")
    told = asked.refusal(gone, 0, 1)
    assert isinstance(told, ProducerForgotten)
    assert told.fields == {"stream": "t/0/0"}
    assert isinstance(asked.refusal(sealed, 0, 1), StaleTopicEpoch)


SUBJECTS = 1_000


def large_gate() -> Gate:
    return gate(*(f"p{number}" for number in range(SUBJECT_MATCHES_PER_STEP // SUBJECTS)))


def frame_about_many(first: str) -> bytes:
    subjects = [first, *(f"t/{number}" for number in range(SUBJECTS))]
    columns = Columns([b""] * len(subjects), None, subjects, None, 1)
    return build_frame(columns, partition=0, producer_id=bytes(16), sequence=0)


async def test_a_frame_of_many_subjects_is_admitted_once_it_was_examined_in_steps() -> None:
    asked, frame = large_gate(), frame_about_many("t/first")
    large = asked.admit(frame, 1)
    assert isinstance(large, Large)
    assert not isinstance(asked.admit(frame, 1, examined=await asked.examine(large)), Large)


async def test_what_was_found_in_steps_refuses_the_frame() -> None:
    asked, frame = large_gate(), frame_about_many("elsewhere")
    large = asked.admit(frame, 1)
    assert isinstance(large, Large)
    with pytest.raises(SubjectOutsideTopic):
        asked.admit(frame, 1, examined=await asked.examine(large))


async def test_what_was_examined_before_the_topic_changed_is_examined_anew() -> None:
    before, after, frame = large_gate(), large_gate(), frame_about_many("t/first")
    large = before.admit(frame, 1)
    assert isinstance(large, Large)
    assert isinstance(after.admit(frame, 1, examined=await before.examine(large)), Large)
