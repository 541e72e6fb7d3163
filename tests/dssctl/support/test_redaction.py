"""Taking names and secrets out."""

from dssctl.support.redaction import LEFT_OUT, Redaction


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
