"""The port for readers that may refuse a new topic.

Invariant: it is asked while topics cannot change, so its answer is still right at the commit. It
must not wait.
"""

from typing import Protocol

from dssd.topics.model import Topic


class TopicGuard(Protocol):
    """Refuses topics that readers cannot follow."""

    def check_new(self, topic: Topic) -> None:
        """Refuse a topic that is about to be created.

        Raises:
            DssError: an existing reader cannot follow it.
        """


class Unguarded:
    """Accepts every topic."""

    def check_new(self, topic: Topic) -> None:
        """Accept it."""
