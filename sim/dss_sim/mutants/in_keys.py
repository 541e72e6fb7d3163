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
        "taken back without a word",
        "the client is not told what was taken back, and keeps it",
        "KeyedLane._take_back",
        "return ranges, freed",
        "return (), freed",
    ),
    Mutant(
        "followers charged",
        "what follows a failed record has failed as well",
        "KeyedLane.next_followers",
        "MovePiece(MAIN, at, at + 1, to, failures, 0, FOLLOWS)",
        "MovePiece(MAIN, at, at + 1, to, failures + 1, 0, FOLLOWS)",
    ),
    Mutant(
        "gate open",
        "an entry goes out before the cursor has met what comes before it",
        "KeyedLane._passed",
        "self._main.records.progress.first_unacked(self._main.cursor)",
        "1 << 62",
    ),
    Mutant(
        "the second goes along",
        "an entry goes out although one before it waits",
        "KeyedLane._pass_gate",
        "self.index.head(head.key) == head",
        "self.index.at(RETRY, head.offset) == head",
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
