"""Taking names and secrets out."""

import json

import pytest

from dss_core.redaction import LEFT_OUT, Redaction, masked, masked_json, reasons_in


def test_a_name_becomes_the_same_word_everywhere_and_not_inside_of_others() -> None:
    redaction = Redaction(["orders", "billing@orders/eu/#", "bill"])
    once = redaction.text("billing@orders/eu/# of orders/0/3, reorders, orders-x")
    words = {level: redaction.text(level) for level in ("billing", "orders", "eu", "bill")}
    assert len(set(words.values())) == 4
    assert once == (
        f"{words['billing']}@{words['orders']}/{words['eu']}/# of {words['orders']}/0/3, "
        "reorders, orders-x"
    )


def test_objects_keep_their_keys_and_lose_names_and_secrets() -> None:
    redaction = Redaction(["name"])
    value = {"name": "name", "list": ["name", 1], "api_token": "t", "key": None}
    assert redaction.value(value) == {
        "name": "name-1",
        "list": ["name-1", 1],
        "api_token": LEFT_OUT,
        "key": None,
    }


def test_addresses_and_what_is_said_to_be_secret_go_from_every_text() -> None:
    redaction = Redaction()
    hook = """curl -H 'Authorization: Bearer abc.def' https://u:p@hooks.example/T0?k=1 -d x"""
    assert redaction.text(hook) == (
        f"curl -H 'Authorization: Bearer {LEFT_OUT}' https://{LEFT_OUT} -d x"
    )
    change = '{"arguments": {"token": "t-1", "password":"p"}}'
    assert redaction.text(change) == (
        f'{{"arguments": {{"token": "{LEFT_OUT}", "password":"{LEFT_OUT}"}}}}'
    )
    assert redaction.text("unix:/d/s has 3 tokens") == "unix:/d/s has 3 tokens"


def test_without_names_to_hide_texts_stay() -> None:
    assert Redaction().text("orders/#") == "orders/#"


def test_what_a_job_was_told_goes_also_where_it_stands_in_a_text_of_json() -> None:
    params = json.dumps({"key": "49", "headers": [["who", "ida"]]})
    row = {"change": json.dumps({"change": "CreateJob", "params": params}), "params": params}
    assert Redaction().value(row) == {
        "change": json.dumps({"change": "CreateJob", "params": LEFT_OUT}),
        "params": LEFT_OUT,
    }


def test_a_person_s_reason_goes_wherever_it_is_repeated_and_the_daemon_s_own_stays() -> None:
    answers = [
        {"principal": "ann", "reason": "ida called", "number": 1},
        {"sentence": "ann applied operation 1, skip: ida called.", "reason": "failing"},
        {"failure": "ann cancelled it: ida called again"},
    ]
    assert Redaction(reasons=reasons_in(answers)).value(answers) == [
        {"principal": "ann", "reason": LEFT_OUT, "number": 1},
        {"sentence": f"ann applied operation 1, skip: {LEFT_OUT}.", "reason": "failing"},
        {"failure": f"ann cancelled it: {LEFT_OUT}"},
    ]


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("url=https://u:p@h.example:8443/a?b=c", f"url=https://{LEFT_OUT}@h.example:8443/a?b=c"),
        ("HTTP://u:p@w@h/", f"HTTP://{LEFT_OUT}@h/"),
        (
            "https://h.example/services/T01/B01/aB3dE6gH9jK2mN5pQ8sT1vW4",
            f"https://h.example/services/T01/B01/{LEFT_OUT}",
        ),
        ("http://h/?token=abc&room=ops", f"http://h/?token={LEFT_OUT}&room=ops"),
        ("https://a-host-of-more-than-twenty-letters1/ops", None),
        ("billing@orders/eu/#, unix:/d/s, 3 tokens", None),
    ],
)
def test_operators_see_addresses_without_what_lets_somebody_in(
    told: str, shown: str | None
) -> None:
    shown = shown or told
    assert masked(told) == shown
    assert json.loads(masked_json(json.dumps({"a": [told]}))) == {"a": [shown]}


def test_what_follows_a_secret_in_a_sentence_stays() -> None:
    said = masked("posted to http://h/?token=abc: why not.")
    assert said == f"posted to http://h/?token={LEFT_OUT}: why not."
