"""Mistakes about ordered groups whose topics grow: the barrier, and re-homing."""

from dss_sim.mutants.planting import Mutant

READ_AGAIN = "dss_sim.groups.read_again"

IN_GROWTH = (
    Mutant(
        "no barrier",
        "streams of a new storage topic are lent before earlier records of their keys are done",
        "leader.barrier._judge",
        "bool(unfinished_parents(turn.state, lent))",
        "False",
    ),
    Mutant(
        "barrier of one generation",
        "a stream that waits holds up no other, so after two switches a key overtakes itself",
        "leader.state.unfinished_parents",
        "not found.finish_saved",
        "not (found.finish_saved or found.is_closed)",
    ),
    Mutant(
        "re-homed before it is given back",
        "the queues of a lane are moved on while its holder still hands out what is in them",
        "leader.stream._report",
        "_revoke(state, RevokeDecided(None))",
        "rehome(state)",
    ),
    Mutant(
        "re-homed without a look",
        "entries that were in the queues of the children before a crash are appended once more",
        "_Attempt._found",
        "self._asked.children",
        "()",
    ),
    Mutant(
        "parents without a factor",
        "streams wait for those that would hold their keys if every factor were 1",
        "generations._numbers",
        "(part.partitions, part.factor)",
        "(part.partitions, 1)",
    ),
    Mutant(
        "re-homed without a factor",
        "entries go to the child that would get their key if the factor were 1",
        "Rehomings._rehoming",
        "after.factor",
        "1",
    ),
    Mutant(
        "nothing goes back",
        "a key whose record waits in a later stream goes on in the one that is read again",
        "queues.going_back._Leaving._is_meant",
        "said.origin_ordinal <= ours.ordinal",
        "False",
        READ_AGAIN,
    ),
)
