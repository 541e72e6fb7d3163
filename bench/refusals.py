"""What refusing some records costs `run`, against what their rests alone make it cost.

Every record of a share is refused the first time and rests for a second; those of its key behind it
wait. An ideal client is given records as fast as where none is refused, the refused ones twice, and
loses nothing but the rests. Where many are refused, keys do not come again: the credit would be
full of records that wait, and the ideal knows no credit. Invariant: which records are refused is
known from their number alone, so that the program that refuses them and the ideal are about the
same ones.
"""

from collections import defaultdict

from processes import Daemon, run_program
from workload import TOPIC

import dss_client

RECORDS = 60_000
CASES = {1: 10_000, 50: RECORDS}
"""Records refused of a hundred, and over how many keys."""
SLICE = 10_000
REST_S = 1.0
"""After the first refusal, as the daemon has it."""


def is_refused(number: int, percent: int, keys: int) -> bool:
    """Whether a record is refused the first time: as many of each key, and of each time."""
    turn, key = divmod(number, keys)
    return (key + turn * percent) % 100 < percent


async def fill(daemon: Daemon, keys: int) -> None:
    """Records that carry their number, the keys one after the other, round and round."""
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.producer(TOPIC) as producer,
    ):
        for first in range(0, RECORDS, SLICE):
            numbers = range(first, first + SLICE)
            await producer.send_columns(
                payloads=[b"%d" % number for number in numbers],
                keys=[b"key-%d" % (number % keys) for number in numbers],
            )


async def rate(daemon: Daemon, percent: int, keys: int) -> float:
    """Thousands of records a second, refused ones counted once."""
    asked = (str(RECORDS), str(percent), str(keys))
    result = await run_program("refuse", daemon.endpoint, f"refuse-{percent}", *asked)
    return RECORDS / float(result["seconds"]) / 1e3


def ideal(unhindered: float, percent: int, keys: int) -> float:
    """The rate where only rests cost time, and each hand-out what it costs without refusals."""
    done_s: defaultdict[int, float] = defaultdict(float)
    came_s = 0.0
    for number in range(RECORDS):
        key, refused = number % keys, is_refused(number, percent, keys)
        came_s += (1 + refused) / (unhindered * 1e3)
        done_s[key] = max(done_s[key], came_s) + REST_S * refused
    return RECORDS / max(done_s.values()) / 1e3
