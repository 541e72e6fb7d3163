"""Ordered groups and topics: which filters such a group may have, and which new topics it forbids.

An ordered group reads one topic, now and later: a pattern of that topic covers the filter, and no
two topics share a subject. Invariant: a check made here holds for as long as the group is there.
The catalogue asks before it makes a topic, and a group is made or edited while the catalogue
changes nothing. This module does not know how the order is kept over the storage topics of a topic.
"""

from collections.abc import Callable, Sequence
from shlex import quote

from dss_core.errors import (
    OrderNeedsOneTopic,
    TopicDividesOrder,
)
from dss_core.filters import TopicFilter
from dssd.store.rows import GroupRow
from dssd.topics.catalogue import Catalogue, Topic

READERS_TOLD_MAX = 5
"""How many names of readers one message has."""


def topic_in_order(group: GroupRow, catalogue: Catalogue) -> Topic:
    """The one topic that an ordered group reads, whatever topics are made later.

    Raises:
        OrderNeedsOneTopic: its filter meets none, or several, or may meet others later.
    """
    wanted = TopicFilter.parse(group.filter)
    meeting = catalogue.meeting(wanted)
    for topic in meeting:
        if topic.covers(wanted):
            return topic
    raise _not_of_one(group, meeting)


def _not_of_one(group: GroupRow, meeting: Sequence[Topic]) -> OrderNeedsOneTopic:
    names = [topic.name for topic in meeting]
    if not names:
        first = group.filter.partition("/")[0]
        name = first if first not in ("+", "#", "") else "TOPIC"
        why = "meets none yet"
        command = f"Make the topic first: dssctl topics create {name}"
    else:
        of = quote(f"{group.name}@{meeting[0].patterns[0].text}")
        why = f"meets more than one: {', '.join(names[:READERS_TOLD_MAX])}"
        if len(names) == 1:
            why = f"meets more than {names[0]}, so topics that are made later too"
        command = (
            "Make a group for each topic, with a filter that lies within it: dssctl groups create "
            f"{of} --ordered --max-deliver 5"
        )
    return OrderNeedsOneTopic(group=group.name, filter=group.filter, why=why, command=command)


class OrderedReaders:
    """The guard of topics that ordered groups read."""

    def __init__(self, groups: Callable[[], Sequence[GroupRow]]) -> None:
        self._groups = groups

    def check_new(self, topic: Topic) -> None:
        """Refuse a topic that would own a part of what an ordered group reads.

        Raises:
            TopicDividesOrder: it would.
        """
        for group in (each for each in self._groups() if each.ordered):
            wanted = TopicFilter.parse(group.filter)
            if topic.meets(wanted) and not topic.covers(wanted):
                raise TopicDividesOrder(
                    topic=topic.name, group=quote(group.full_name), filter=group.filter
                )
