"""The page of a group: what becomes of records that fail."""

from dss_api.v1 import groups_pb2
from dss_api.values import decoded
from dss_client import Group
from dssctl.nouns.groups import group_item
from dssctl.pages.group_page import GROUP_PAGE_KIND

PLAIN = {"name": "billing", "filter": "orders/#", "ack_wait_ms": 30_000}
CAREFUL = {
    **PLAIN,
    "max_deliver": 5,
    "backoff_ms": (1_000, 30_000),
    "queue_records": 1_000,
    "queue_bytes": 4 << 30,
    "retrying": 3,
    "dead": 2,
}


def queues_and_retries(fields: dict[str, object]) -> tuple[str, str]:
    item = group_item(decoded(groups_pb2.Group(**fields), Group))  # type: ignore[arg-type]
    columns = {column.header: column for column in GROUP_PAGE_KIND.columns}
    return columns["QUEUES"].text(item, 0), columns["RETRIES"].text(item, 0)


def test_the_page_says_what_becomes_of_records_that_fail() -> None:
    queues, retries = queues_and_retries(PLAIN)
    assert (queues, retries) == ("none: a record that fails comes again for ever", "-")
    queues, retries = queues_and_retries(CAREFUL)
    assert queues == "3 retrying, 2 dead"
    assert retries == (
        "dead after 5 failures, back-off 1s,30s, at most 1000 records or 4.0G of a stream in its "
        "queues"
    )
