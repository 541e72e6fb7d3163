"""Names of streams."""

import pytest

from dss_core.errors import IllegalName
from dss_core.ids import StreamName


def test_a_stream_name_reads_back_what_it_writes() -> None:
    name = StreamName("orders", 0, 3)
    assert str(name) == "orders/0/3"
    assert StreamName.parse("orders/0/3") == name


@pytest.mark.parametrize(
    "text",
    ["", "orders", "orders/0", "orders/0/3/1", "orders/x/3", "orders/0/-1", "orders/0/²"],
)
def test_any_other_form_is_refused(text: str) -> None:
    with pytest.raises(IllegalName):
        StreamName.parse(text)


@pytest.mark.parametrize("text", ["/0/3", "a b/0/3", "orders//3", "orders/0/1234567890"])
def test_each_part_keeps_its_rule(text: str) -> None:
    with pytest.raises(IllegalName):
        StreamName.parse(text)
