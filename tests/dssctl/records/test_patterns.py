"""Patterns over payloads, and those that would take for ever."""

import signal

import pytest

from dss_core.errors import IllegalArgument, PatternTooSlow
from dssctl.records import patterns
from dssctl.records.patterns import Pattern, bounded


def test_a_pattern_is_found_anywhere_in_the_text_of_a_payload() -> None:
    assert Pattern("ä.c").is_in("xx äbc".encode())
    assert Pattern("b").is_in(b"\xffb")
    assert not Pattern("^b").is_in(b"ab")


def test_what_is_no_pattern_is_refused_with_its_reason() -> None:
    with pytest.raises(IllegalArgument, match="unterminated"):
        Pattern("(")


def test_a_pattern_that_backtracks_is_ended_and_the_alarm_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patterns, "PATTERN_S_MAX", 0.05)
    before = signal.getsignal(signal.SIGALRM)
    slow = Pattern("(a+)+b")
    with pytest.raises(PatternTooSlow), bounded(slow.text):
        slow.is_in(b"a" * 60)
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
