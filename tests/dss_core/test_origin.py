"""Origin headers of records that bulk jobs copy."""

import pytest

from dss_core.errors import HopLimit
from dss_core.origin import HOP, ORIGIN, Source, copied_headers, hops_of

SOURCE = Source("orders/0/3", 1234, 1_795_000_000_000_000)


def test_a_copy_says_where_it_came_from_behind_the_headers_of_the_user() -> None:
    headers = copied_headers((("trace", b"7"),), SOURCE, "replay-1", 4)
    assert headers == (
        ("trace", b"7"),
        ("dss-origin", b"orders/0/3@1234"),
        ("dss-origin-us", b"1795000000000000"),
        ("dss-job", b"replay-1"),
        ("dss-hop", b"1"),
    )


def test_a_copy_of_a_copy_keeps_the_first_origin_and_counts_on() -> None:
    first = copied_headers((), SOURCE, "replay-1", 4)
    second = dict(copied_headers(first, Source("other/0/0", 9, 5), "replay-2", 4))
    assert second[ORIGIN] == b"orders/0/3@1234"
    assert second[HOP] == b"2"
    assert second["dss-job"] == b"replay-2"


def test_nothing_is_copied_beyond_the_limit_of_hops() -> None:
    copied = copied_headers((), SOURCE, "replay-1", 1)
    with pytest.raises(HopLimit, match="copied 1 times"):
        copied_headers(copied, SOURCE, "replay-2", 1)


def test_a_header_that_is_no_number_counts_as_no_hop() -> None:
    assert hops_of(((HOP, b"many"),)) == 0
