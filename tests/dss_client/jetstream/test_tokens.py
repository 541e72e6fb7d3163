"""Acknowledgement subjects (rows T of the checklist)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dss_client.jetstream.tokens import AckSubject
from dss_core.errors import NotAJetStreamMessage

V1 = "$JS.ACK.s.c.1.2.3.4.5"
V2 = "$JS.ACK._.hash.s.c.1.2.3.4.5"
HIGHEST = (1 << 64) - 1

REFUSED = {
    "T03 ten tokens": f"{V1}.x",
    "T03 nine and a dot": f"{V1}.",
    "T04 eight tokens": "$JS.ACK.s.c.1.2.3.4",
    "T05 none": None,
    "T05 an empty one": "",
    "T06 no prefix": "1.2.3.4.5.6.7.8.9",
    "T06 another prefix": V1.replace("$JS", "$ABC"),
    "T06 flow control": V1.replace("ACK", "FC"),
    "T06 lower case": V1.replace("$JS.ACK", "$js.ack"),
    "T08 a word": V1.replace(".5", ".five"),
    "T08 nothing": "$JS.ACK.s.c..2.3.4.5",
    "T08 a minus": V1.replace(".5", ".-5"),
    "T08 a plus": V1.replace(".5", ".+5"),
    "T08 an underscore": V1.replace(".5", ".1_0"),
    "T08 a space": V1.replace(".5", ". 5"),
    "T08 another script": V1.replace(".5", ".\uff15"),
    "T08 more than 64 bits": V1.replace(".5", f".{HIGHEST + 1}"),
    "T08 what wraps to one": V1.replace(".5", ".18446744073709551617"),
    "T08 very many digits": V1.replace(".5", "." + "9" * 100_000),
    "T12 no stream": "$JS.ACK..c.1.2.3.4.5",
    "T12 no consumer": "$JS.ACK.s..1.2.3.4.5",
}


@pytest.mark.parametrize("row", REFUSED)
def test_what_is_no_ack_subject_is_refused(row: str) -> None:
    # T13: it is raised, never told as a message of zeros.
    with pytest.raises(NotAJetStreamMessage):
        AckSubject.parse(REFUSED[row])


# T15: servers form either.
def test_t01_nine_tokens_have_no_domain() -> None:
    assert AckSubject.parse(V1) == AckSubject("s", "c", 1, 2, 3, 4, 5)
    assert AckSubject.parse(V1).domain is None


@pytest.mark.parametrize("more", [(), ("random",), ("a", "b", "c", "d")])
def test_t02_eleven_tokens_and_more_are_of_the_second_form(more: tuple[str, ...]) -> None:
    told = AckSubject.parse(".".join([V2, *more]))
    assert (told.stream, told.consumer, told.num_pending, told.more) == ("s", "c", 5, more)


def test_t07_no_domain_is_an_empty_one() -> None:
    assert AckSubject.parse(V2).domain == ""
    assert AckSubject.parse(V2.replace("._.", ".hub.")).domain == "hub"


def test_t09_zeros_before_a_number_count_nothing() -> None:
    assert AckSubject.parse(V1.replace(".5", "." + "0" * 30 + "7")).num_pending == 7


def test_t10_nanoseconds_are_kept() -> None:
    stored_ns = 1_700_000_000_123_456_789
    assert AckSubject.parse(V1.replace(".4.", f".{stored_ns}.")).timestamp_ns == stored_ns


def test_t11_names_are_kept_as_they_are() -> None:
    told = AckSubject.parse("$JS.ACK.a%b-c_d.e%f.1.2.3.4.5")
    assert (told.stream, told.consumer) == ("a%b-c_d", "e%f")


tokens = st.text(st.characters(exclude_characters=".", exclude_categories=["Cs"]), min_size=1)
numbers = st.integers(0, HIGHEST)
digits = st.one_of(
    numbers.map(str),
    st.integers(-5, 1 << 80).map(str),
    st.text("0123456789 \u0663+_-\uff15", max_size=25),
)
subjects = st.builds(
    AckSubject, tokens, tokens, numbers, numbers, numbers, numbers, numbers,
    st.none() | tokens.filter(lambda each: each != "_") | st.just(""),
).map(
    lambda each: each if each.domain is None else AckSubject(
        each.stream, each.consumer, each.num_delivered, each.stream_seq, each.consumer_seq,
        each.timestamp_ns, each.num_pending, each.domain, "account", ("x",),
    )
)  # fmt: skip


@given(subjects)
def test_what_is_formed_is_read_again(subject: AckSubject) -> None:
    assert AckSubject.parse(str(subject)) == subject


@given(st.lists(digits, min_size=5, max_size=5), st.booleans())
def test_numbers_are_ascii_digits_of_64_bits_and_nothing_else(
    found: list[str], longer: bool
) -> None:
    head = "$JS.ACK._.h.s.c" if longer else "$JS.ACK.s.c"
    good = all(each.isascii() and each.isdigit() and int(each) <= HIGHEST for each in found)
    text = ".".join([head, *found])
    if not good or any("." in each for each in found):
        with pytest.raises(NotAJetStreamMessage):
            AckSubject.parse(text)
    else:
        assert AckSubject.parse(text).num_pending == int(found[-1])


@given(st.integers(0, 16))
def test_only_nine_tokens_and_eleven_and_more_are_taken(count: int) -> None:
    text = ".".join(["$JS", "ACK", *["1"] * count])
    try:
        AckSubject.parse(text)
    except NotAJetStreamMessage:
        assert count + 2 not in (9, 11, 12, 13, 14, 15, 16, 17, 18)
    else:
        assert count + 2 == 9 or count + 2 >= 11
