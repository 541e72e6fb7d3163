"""Why a record is moved to a queue, as its entry says it."""

REFUSED, REJECTED, ACK_WAIT, DIED, REDRIVEN = (
    "refused",
    "rejected",
    "ack wait",
    "died",
    "redriven",
)

GIVEN_UP = "given up"
"""An operator sent it to the dead letters."""

FOLLOWS = "follows"
"""Nothing is wrong with it: it waits behind an earlier record of its key."""

NO_KEY = "no key"
"""It has no key, in a group that makes such records dead letters."""
