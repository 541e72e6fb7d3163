"""Filters against a reference matcher, and their overlap against brute force."""

from collections.abc import Callable
from functools import cache
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dss_core.errors import IllegalFilter, IllegalName, IllegalSubject, QueueWithoutGroup
from dss_core.filters import (
    SubscriptionFilter,
    TopicFilter,
    check_name,
    check_subject,
    check_subjects,
)
from dss_core.limits import NAME_BYTES_MAX, SUBJECT_BYTES_MAX, SUBJECT_LEVELS_MAX

WORDS = ["a", "b", "", "$s"]
LEVELS_MAX = 3


def reference_matches(text: str, subject: str) -> bool:
    """MQTT 5, section 4.7, word for word and level by level."""
    wanted, given_levels = text.split("/"), subject.split("/")
    if subject[0] == "$" and wanted[0] in ("+", "#"):
        return False
    while wanted:
        level = wanted.pop(0)
        if level == "#":
            return True
        if not given_levels:
            return False
        have = given_levels.pop(0)
        if level not in ("+", have):
            return False
        if not given_levels and wanted == ["#"]:
            return True
    return not given_levels


def all_subjects() -> list[str]:
    """Every legal subject over the alphabet, one level longer than any filter."""
    texts = ["/".join(w) for n in range(1, LEVELS_MAX + 2) for w in product(WORDS, repeat=n)]
    return [text for text in texts if text]


def all_filters() -> list[TopicFilter]:
    texts = []
    for count in range(1, LEVELS_MAX + 1):
        for words in product([*WORDS, "+"], repeat=count - 1):
            texts += ["/".join([*words, last]) for last in [*WORDS, "+", "#"]]
    return [TopicFilter.parse(text) for text in texts if text]


SUBJECTS = all_subjects()
FILTERS = all_filters()


@cache
def matched() -> dict[TopicFilter, frozenset[str]]:
    """What each filter matches, by the reference: seventy thousand comparisons."""
    return {
        topic_filter: frozenset(s for s in SUBJECTS if reference_matches(topic_filter.text, s))
        for topic_filter in FILTERS
    }


def test_matching_agrees_with_the_reference_on_every_small_filter_and_subject() -> None:
    for topic_filter, wanted in matched().items():
        assert {s for s in SUBJECTS if topic_filter.matches(s)} == wanted, topic_filter.text


def test_overlap_agrees_with_brute_force_on_every_pair_of_small_filters() -> None:
    found = matched()
    for one, other in product(FILTERS, repeat=2):
        assert one.overlaps(other) == bool(found[one] & found[other]), (one.text, other.text)


def test_a_filter_that_covers_another_matches_all_that_it_matches() -> None:
    for one, other in product(FILTERS, repeat=2):
        if one.covers(other):
            assert matched()[other] <= matched()[one], (one.text, other.text)


@pytest.mark.parametrize(
    ("one", "other", "covered"),
    [
        ("a/#", "a/#", True),
        ("a/#", "a", True),
        ("#", "a/#", True),
        ("+/#", "a/+/#", True),
        ("a/+", "a/b", True),
        ("a/b", "a/+", False),
        ("a/+", "a/#", False),
        ("a/+/#", "a/#", False),
        ("#", "$a/#", False),
        ("+/b", "$a/b", False),
        ("$a/#", "$a/b", True),
    ],
)
def test_whether_a_filter_covers_another(one: str, other: str, covered: bool) -> None:
    assert TopicFilter.parse(one).covers(TopicFilter.parse(other)) is covered


level = st.text(st.sampled_from("ab$é "), max_size=3)
subjects = st.lists(level, min_size=1, max_size=8).map("/".join).filter(bool)


@st.composite
def filters(draw: st.DrawFn) -> TopicFilter:
    levels = draw(st.lists(st.one_of(level, st.just("+")), max_size=8))
    if draw(st.booleans()) or not any(levels):
        levels.append("#")
    return TopicFilter.parse("/".join(levels))


@given(filters(), subjects)
def test_matching_agrees_with_the_reference(topic_filter: TopicFilter, subject: str) -> None:
    assert topic_filter.matches(subject) == reference_matches(topic_filter.text, subject)


@given(filters(), filters(), subjects)
def test_overlap_is_symmetric_and_has_a_witness(
    one: TopicFilter, other: TopicFilter, subject: str
) -> None:
    common = one.common_subject(other)
    assert one.overlaps(other) == other.overlaps(one) == (common is not None)
    if common is not None:
        check_subject(common)
        assert one.matches(common)
        assert other.matches(common)
    elif one.matches(subject):
        assert not other.matches(subject)


def test_the_default_pattern_of_a_topic_matches_the_topic_name_itself() -> None:
    assert TopicFilter.parse("orders/#").matches("orders")
    assert not TopicFilter.parse("orders/#").matches("orders2")


@pytest.mark.parametrize(("text", "hidden"), [("#", True), ("+/x", True), ("$SYS/#", False)])
def test_dollar_subjects_are_hidden_from_a_leading_wildcard(text: str, hidden: bool) -> None:
    assert TopicFilter.parse(text).matches("$SYS/x") is not hidden


def test_no_subject_is_long_enough_to_match_two_filters_that_are_long_in_different_levels() -> None:
    one = TopicFilter.parse("x" * 600 + "/+")
    other = TopicFilter.parse("+/" + "y" * 600)
    assert not one.overlaps(other)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a/#/b",
        "a#",
        "a/b+",
        "+a",
        "##",
        "a\x00b",
        "a\nb",
        "a\x7f",
        "a\ud800",
        "x" * (SUBJECT_BYTES_MAX + 1),
        "é" * (SUBJECT_BYTES_MAX // 2 + 1),
        "/" * SUBJECT_LEVELS_MAX,
        "$share/g/f",
        "$shared",
        "$queue/g/f",
    ],
)
def test_an_illegal_filter_is_refused(text: str) -> None:
    with pytest.raises(IllegalFilter):
        TopicFilter.parse(text)


def test_a_filter_of_exactly_the_limits_is_accepted() -> None:
    TopicFilter.parse("x" * SUBJECT_BYTES_MAX)
    TopicFilter.parse("/" * (SUBJECT_LEVELS_MAX - 1))


@pytest.mark.parametrize("subject", ["", "a/+", "a#", "a\tb", "\x85", "\udfff", "x" * 1_025])
def test_an_illegal_subject_is_refused(subject: str) -> None:
    with pytest.raises(IllegalSubject):
        check_subject(subject)


@pytest.mark.parametrize("subject", ["a", "/", "a//b", "$SYS/x", "flüge/ewr", "x" * 1_024, " "])
def test_a_legal_subject_is_accepted(subject: str) -> None:
    check_subject(subject)


@pytest.mark.parametrize("name", ["", "a/b", "a b", "é", "a\n", "+", "x" * (NAME_BYTES_MAX + 1)])
def test_an_illegal_name_is_refused(name: str) -> None:
    with pytest.raises(IllegalName):
        check_name(name)


def test_names_use_letters_digits_dot_underscore_and_dash() -> None:
    check_name("Az09._-")
    check_name("x" * NAME_BYTES_MAX)


@pytest.mark.parametrize("word", ["$share", "$shared", "$shares"])
def test_every_spelling_of_a_shared_subscription_means_the_same(word: str) -> None:
    parsed = SubscriptionFilter.parse(f"{word}/billing/orders/#")
    assert parsed == SubscriptionFilter("billing", False, TopicFilter.parse("orders/#"))
    assert parsed.text == "$share/billing/orders/#"


def test_a_queue_names_its_group() -> None:
    parsed = SubscriptionFilter.parse("$queue/workers/jobs/+")
    assert (parsed.group, parsed.queue, parsed.filter.text) == ("workers", True, "jobs/+")
    assert parsed.text == "$queue/workers/jobs/+"


def test_a_plain_filter_has_no_group() -> None:
    parsed = SubscriptionFilter.parse("orders/#")
    assert (parsed.group, parsed.queue, parsed.text) == (None, False, "orders/#")


@pytest.mark.parametrize(
    "text", ["$queue", "$queue/", "$queue/jobs", "$queue/#", "$queue/+/x", "$queue//x", "$queue/a/"]
)
def test_a_queue_without_a_group_is_refused_by_its_own_error(text: str) -> None:
    with pytest.raises(QueueWithoutGroup):
        SubscriptionFilter.parse(text)


@pytest.mark.parametrize(
    "text", ["$share", "$share/g", "$share/g/", "$share/g/a#", "$share/g/$share/h/f"]
)
def test_a_shared_subscription_without_a_legal_filter_is_refused(text: str) -> None:
    with pytest.raises(IllegalFilter):
        SubscriptionFilter.parse(text)


@pytest.mark.parametrize("text", ["$share//f", "$share/+/f", "$share/a b/f", "$queue/a b/f"])
def test_a_group_name_must_be_a_legal_name(text: str) -> None:
    with pytest.raises(IllegalName):
        SubscriptionFilter.parse(text)


@given(st.text(max_size=40))
def test_parsing_any_text_gives_a_filter_or_a_condition(text: str) -> None:
    try:
        parsed = SubscriptionFilter.parse(text)
    except (IllegalFilter, IllegalName, QueueWithoutGroup):
        return
    assert SubscriptionFilter.parse(parsed.text) == parsed


@given(st.lists(st.text(st.sampled_from("ab/+\n") | st.characters(), max_size=70), max_size=6))
def test_checking_many_subjects_is_checking_each(many: list[str]) -> None:
    def refused(check: Callable[[], object]) -> bool:
        try:
            check()
        except IllegalSubject:
            return True
        return False

    assert refused(lambda: check_subjects(many)) == refused(lambda: [*map(check_subject, many)])
