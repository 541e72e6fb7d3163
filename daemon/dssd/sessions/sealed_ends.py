"""Tells the delivery window where a stream ends, once its storage topic is sealed.

Invariant: no end is told for a grant that is over. This module must not know what the end is for.
"""

from collections.abc import Callable
from contextlib import suppress

from dss_core.errors import StreamNotFound
from dss_core.ids import StreamId
from dssd.machines.delivery.events import StreamSealed
from dssd.topics.catalogue import Catalogue, Topic


class SealedEnds:
    """The sealed ends for the grants of one session."""

    def __init__(self, catalogue: Catalogue, feed: Callable[[StreamSealed], None]) -> None:
        self._catalogue = catalogue
        self._feed = feed

    def watch(
        self, grant: int, stream: StreamId, unwatch: Callable[[], None]
    ) -> Callable[[], None]:
        """Tell when the stream is sealed; returns a function that ends this and ``unwatch``."""

        def changed(topic: Topic, removed: bool) -> None:
            if not removed and stream in topic.streams():
                self.tell(grant, stream)

        unwatch_topics = self._catalogue.watch(changed)

        def end() -> None:
            unwatch()
            unwatch_topics()

        return end

    def tell(self, grant: int, stream: StreamId) -> None:
        """Tell the end of the stream now, if it is sealed."""
        with suppress(StreamNotFound):
            topic = self._catalogue.topic_of(stream)
            for part in topic.storage_topics:
                if part.ends is not None and stream.storage_topic_id == part.storage_topic_id:
                    self._feed(StreamSealed(grant, part.ends[stream.partition]))
