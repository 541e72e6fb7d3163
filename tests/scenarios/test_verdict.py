"""That the verdict on a trial can be guilty: each thing that it is to find, it finds."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest

from support import trial_verdict
from support.client_trial import ORDERS, Journal, perform
from support.revived_daemon import revived

SMALL = (str(Path(__file__).parent / "programs" / "small_daemon.py"),)


def lose(journal: Journal) -> None:
    """A record was acknowledged that is not there."""
    journal.stored[f"{ORDERS}/0/0", 10_000] = b"lost 0 "


def replace(journal: Journal) -> None:
    """A record was acknowledged at a place where another one is."""
    journal.stored[f"{ORDERS}/0/0", 0] = b"another 0 "


def invent(journal: Journal) -> None:
    """A record is there that nobody sent."""
    journal.tried[ORDERS].remove(journal.stored[f"{ORDERS}/0/0", 0])


def lose_topic(journal: Journal) -> None:
    """A topic was created that is not there."""
    journal.created.add("gone")


def bring_back(journal: Journal) -> None:
    """A topic was removed that is there."""
    journal.removed.add(ORDERS)


def redeliver(journal: Journal) -> None:
    """A record was settled that comes again."""
    unsettled = {place for place in journal.stored if place[0].startswith(f"{ORDERS}/")}
    journal.settled.add(min(unsettled - journal.settling))


HARMS: dict[str, Callable[[Journal], None]] = {
    "10000. is None": lose,
    "0. is b'": replace,
    "nobody sent": invent,
    "a topic was lost": lose_topic,
    "a topic came back": bring_back,
    "delivered again although settled": redeliver,  # the last, for it takes the records
}


async def test_the_verdict_on_a_trial_finds_what_it_is_to_find() -> None:
    journal = Journal()
    async with revived(program=SMALL, from_nothing=True) as daemon:
        assert await perform(journal, daemon.endpoint, daemon.process.wait())
        for told, harm in HARMS.items():
            harmed = deepcopy(journal)
            harm(harmed)
            with pytest.raises(AssertionError, match=told):
                await trial_verdict.check(daemon.endpoint, harmed)
