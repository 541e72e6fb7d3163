"""Who is asked before a topic is made.

Invariant: it is asked while nothing else changes topics, so what it lets through is still right
when that is committed. It must not wait.
"""

from typing import Protocol

from dssd.topics.model import Topic


class TopicGuard(Protocol):
    """Refuses what readers of topics cannot follow."""

    def check_new(self, topic: Topic) -> None:
        """Refuse a topic that is about to be made.

        Raises:
            DssError: it cannot be there beside what is read.
        """


class Unguarded:
    """Lets everything through."""

    def check_new(self, topic: Topic) -> None:
        """It may be made."""
