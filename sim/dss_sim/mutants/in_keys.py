"""Mistakes about the order of keys: `delivery/keyed_lane`, `lanes`."""

from dss_sim.mutants.planting import Mutant

IN_KEYS = (
    Mutant(
        "followers not taken back",
        "what was sent behind a refused record of its key stays with the client",
        "KeyedLane._take_back",
        "records.ending or not offsets",
        "True",
    ),
    Mutant(
        "what is out is passed",
        "an entry goes out though an earlier record of its key is still with the client",
        "KeyedLane._note_out",
        "self._wait_in_main(out)",
        "pass",
    ),
    Mutant(
        "dead letters forgotten",
        "a new holder lets a key go on whose record is dead",
        "KeyedLane.enter_dead",
        "self.blocks",
        "False",
    ),
    Mutant(
        "stranded behind the dead",
        "what waits in the retry queue of a dead key stays there for ever",
        "KeyedLane._follow_the_dead",
        "self._is_redriving()",
        "True",
    ),
)
