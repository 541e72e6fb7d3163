"""The JetStream facade beside what it stands on, and beside nats-py with a real NATS server.

A NATS server answers a publish before the disk has it; a topic of durability `os` does so too, and
one of durability `sync`, as topics are made, does not.
"""

from processes import run_program, running_daemon
from results import Row

MESSAGES = 100_000
NATIVE = "the same records, natively"
NATS = "nats-py and nats-server"


def rows() -> dict[str, Row]:
    """Those that the part fills."""
    thousand = "k messages/s"
    return {
        "messages": Row("consume, messages of JetStream", "M records/s", "", NATIVE, ">= 0.90"),
        "nats_published": Row("nats-py, publish_async", thousand, "baseline"),
        "published_os": Row("  the facade, durability os", thousand, "", NATS, ">= 1.0"),
        "published_sync": Row("  the facade, durability sync", thousand, "", NATS, ">= 1.0"),
        "nats_pulled": Row("nats-py, fetch of 500", thousand, "baseline"),
        "pulled": Row("  the facade", thousand, "", NATS, ">= 1.0"),
    }


async def beside_nats(table: dict[str, Row]) -> None:
    """Both sides, one after the other."""
    theirs = await _rates("nats", "-")
    table["nats_published"].add(theirs[0])
    table["nats_pulled"].add(theirs[1])
    for durability in ("os", "sync"):
        async with running_daemon() as daemon:
            ours = await _rates(daemon.endpoint, durability)
        table[f"published_{durability}"].add(ours[0], theirs[0])
    table["pulled"].add(ours[1], theirs[1])


async def _rates(side: str, durability: str) -> tuple[float, float]:
    took = await run_program("jetstream", side, durability, str(MESSAGES))
    thousands = float(took["messages"]) / 1_000
    return thousands / float(took["published_s"]), thousands / float(took["pulled_s"])
