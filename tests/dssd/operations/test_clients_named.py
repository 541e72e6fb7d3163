"""Clients in sentences."""

import pytest

from dssd.operations.kinds.clients_named import they


@pytest.mark.parametrize(
    ("clients", "sentence"),
    [
        (["anna"], "anna gives"),
        (["anna", "bert"], "anna and bert give"),
        (["anna", "bert", "carl"], "anna, bert and carl give"),
        ([f"c{number}" for number in range(12)],
         "c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 and 2 more give"),
    ],
)  # fmt: skip
def test_a_verb_agrees_with_how_many_do_it(clients: list[str], sentence: str) -> None:
    assert they(clients, "gives", "give") == sentence
