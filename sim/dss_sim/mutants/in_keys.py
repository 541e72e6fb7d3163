"""Mistakes about the order of keys: `delivery/keyed_lane`, `lanes`."""

from dss_sim.mutants.planting import Mutant

IN_KEYS = (
    Mutant(
        "followers not taken back",
        "records sent behind a refused one of the same key stay with the client",
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
        "records behind a failed one are charged a failure too",
        "KeyedLane.next_followers",
        "MovePiece(MAIN, at, at + 1, to, failures, 0, FOLLOWS)",
        "MovePiece(MAIN, at, at + 1, to, failures + 1, 0, FOLLOWS)",
    ),
    Mutant(
        "gate open",
        "an entry is sent before the cursor has passed the records before it",
        "KeyedLane._passed",
        "self._main.records.progress.first_unacked(self._main.cursor)",
        "1 << 62",
    ),
    Mutant(
        "the second goes along",
        "an entry is sent although an earlier one still waits",
        "KeyedLane._pass_gate",
        "self.index.head(head.key) == head",
        "self.index.at(RETRY, head.offset) == head",
    ),
    Mutant(
        "what is out is passed",
        "an entry is sent though an earlier record of its key is still with the client",
        "KeyedLane._note_out",
        "self._wait_in_main(out)",
        "pass",
    ),
    Mutant(
        "dead letters forgotten",
        "a new holder sends later records of a key whose record is dead",
        "KeyedLane.enter_dead",
        "self.blocks",
        "False",
    ),
    Mutant(
        "stranded behind the dead",
        "retries of a key with a dead record stay in their queue for ever",
        "KeyedLane._follow_the_dead",
        "self._is_redriving()",
        "True",
    ),
)
