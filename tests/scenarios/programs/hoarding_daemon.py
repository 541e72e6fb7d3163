"""A daemon that trims no queues, so that its files tell where each record was: ``hoarding_daemon.py
ARGUMENTS OF DSSD``.
"""

import sys

from dssd.__main__ import main
from dssd.topics.queue_trims import QueueTrims


async def keep(_: QueueTrims) -> int:
    """Drop nothing."""
    return 0


if __name__ == "__main__":
    QueueTrims.trim = keep  # type: ignore[method-assign, assignment]
    sys.exit(main(sys.argv[1:]))
