"""What lies with a group, which whoever makes groups may write."""

import pytest

from dss_client.jetstream.config import ConsumerConfig, from_metadata, to_metadata


def test_what_the_facade_wrote_is_read() -> None:
    config = ConsumerConfig(name="c", filter_subject="a.>")
    assert from_metadata(to_metadata("s", config, "me")) == ("s", config)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "[" * 100_000,
        '{"jetstream": 1}',
        '{"jetstream": 1, "stream": "s", "config": 5}',
        '{"jetstream": 1, "stream": "s", "config": {"deliver_policy": "never"}}',
        '{"jetstream": 1, "stream": "s", "config": {"opt_start_time": "soon"}}',
    ],
)
def test_what_it_did_not_write_is_none_of_its_consumers(text: str) -> None:
    assert from_metadata(text) is None
