"""What a plan that grows a topic says of the shards of its ordered groups.

Invariant: a sentence a group, of counts only; the group is cut anew by an operation of its own.
"""

from collections.abc import Iterator, Sequence
from shlex import quote

from dss_core.counted import counted
from dss_core.routing import Router
from dss_core.shards import Layout, better_counts, is_aligned, is_even
from dssd.leaders.declarations import SHARD
from dssd.operations.plans import subject_of
from dssd.store.rows import GroupRow
from dssd.topics.model import StorageTopic, Topic


def shard_advice(topic: Topic, added: StorageTopic, groups: Sequence[GroupRow]) -> Iterator[str]:
    """How the shards of each group fit what it reads then, and which count would fit better."""
    parts = (topic.producing, added)
    layouts, router = [Layout(each.partitions, each.factor) for each in parts], Router(topic.router)
    for group in groups:
        if group.allocation != SHARD:
            continue
        count = group.shards or added.base
        even = "even" if is_even(count, layouts) else "uneven"
        aligned = "aligned" if is_aligned(count, router, layouts) else "not aligned"
        told = f"{subject_of(group)} has {counted(count, 'shard')} then: {even}, and {aligned}."
        better = better_counts(count, router, layouts)
        most = max(each.partitions for each in layouts)
        if better:
            name = quote(group.full_name)
            told += f" Both are so with dssctl shards set-count {name} {better[0]}."
        elif count < most:
            told += f" It may have up to {most:,}, for as many members."
        yield told
