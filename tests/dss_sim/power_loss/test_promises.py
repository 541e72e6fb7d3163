"""What follows from what was told."""

from dss_core.ids import StreamId
from dss_sim.power_loss.promises import (
    AckAsked,
    Acked,
    Fact,
    Promises,
    RemovalAsked,
    Sent,
    SentTogether,
    Stored,
    Synced,
    TopicAsked,
    TopicMade,
    TopicRemoved,
    TrimAsked,
    Trimmed,
    decode,
    encode,
)

STREAM = StreamId(2, 0)


def promises(*facts: Fact) -> Promises:
    return Promises.of(encode(fact) for fact in facts)


def test_a_fact_survives_its_line() -> None:
    for fact in (Stored(2, 0, 7, ["ü", "line\nbreak"]), TopicRemoved("orders")):
        assert decode(encode(fact)) == fact
        assert "\n" not in encode(fact)


def test_a_topic_may_exist_then_must_then_may_then_must_not() -> None:
    facts: list[Fact] = [
        TopicAsked("t"),
        TopicMade("t", 1, 2, 1),
        RemovalAsked("t"),
        TopicRemoved("t"),
    ]
    seen = [promises(*facts[:count]) for count in range(1, 5)]
    assert [("t" in one.topics, "t" in one.maybe, "t" in one.removed) for one in seen] == [
        (False, True, False),
        (True, False, False),
        (False, True, False),
        (False, False, True),
    ]


def test_what_was_sent_may_be_there_and_what_was_stored_must() -> None:
    found = promises(Sent(2, 0, ["a", "b"]), Sent(2, 0, ["c"]), Stored(2, 0, 5, ["a", "b"]))
    assert found.sent[STREAM] == {"a", "b", "c"}
    assert found.stored[STREAM] == {5: "a", 6: "b"}


def test_what_a_topic_answers_before_it_is_durable_may_go_but_its_offsets_stay_given() -> None:
    made = TopicMade("t", 1, 2, 1, "os")
    stored = [Stored(2, 0, 0, ["a", "b"]), Stored(2, 0, 2, ["c"])]
    found = promises(made, *stored)
    assert found.stored[STREAM] == {}
    assert (found.seen[STREAM], found.ends_min[STREAM]) == ({0: "a", 1: "b", 2: "c"}, 3)
    found = promises(made, *stored, Synced(2, 0, 2))
    assert (found.stored[STREAM], found.ends_min[STREAM]) == ({0: "a", 1: "b"}, 3)


def test_a_group_has_seen_what_it_acknowledges() -> None:
    assert promises(AckAsked("g", 2, 0, 8)).ends_min[STREAM] == 8


def test_starts_and_progress_lie_between_what_was_told_and_what_was_asked() -> None:
    asked, told = AckAsked("g", 2, 0, 8), Acked("g", 2, 0, 8)
    found = promises(TrimAsked(2, 0, 9), asked, Trimmed(2, 0, 6), told)
    assert (found.starts_min[STREAM], found.starts_max[STREAM]) == (6, 9)
    assert (found.floors_min["g", STREAM], found.floors_max["g", STREAM]) == (8, 8)


def test_what_was_sent_together_is_known_by_its_number() -> None:
    found = promises(Sent(2, 0, ["a"]), Sent(2, 1, ["b"]), SentTogether(4, ["a", "b"]))
    assert found.together == {4: {"a", "b"}}
