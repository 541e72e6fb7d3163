"""Mistakes in what the log remembers of producers, and about bytes that it can no longer read."""

from dss_sim.mutants.planting import Mutant

IN_LOG = (
    Mutant(
        "repeat stored again",
        "a frame that is sent again is stored again",
        "Producers.first_answer",
        """
        if behind >= 0 and answer is None:
            raise SequenceTooOld(given=sequence, stream=self._stream(partition))
        return answer
        """,
        "return None",
    ),
    Mutant(
        "answer of another sequence",
        "a repeat is answered with the newest answer of its producer",
        "Producers.first_answer",
        "recent.answer(behind)",
        "recent.answer(0)",
    ),
    Mutant(
        "one answer remembered",
        "a producer may have more in flight than the daemon remembers answers",
        "Recent.add",
        "self._answers + _ANSWER.pack(*answer)",
        "_ANSWER.pack(*answer)",
    ),
    Mutant(
        "marked sequences forgotten",
        "a start does not take from marks what producers had sent",
        "Producers.apply",
        "self._learn(entry)",
        "",
    ),
    Mutant(
        "snapshot without answers",
        "what was stored before the active segment cannot be answered again after a start",
        "Recent.encoded",
        """
        said = len(self._answers) // _ANSWER.size | (_IN_DOUBT if self.in_doubt else 0)
        return _ENTRY.pack(*key, self.last, self.time_us, self.share.owner, said) + self._answers
        """,
        """
        said = _IN_DOUBT if self.in_doubt else 0
        return _ENTRY.pack(*key, self.last, self.time_us, self.share.owner, said)
        """,
    ),
    Mutant(
        "no doubt after a crash",
        "a producer whose frames went with the machine is shut out by a gap",
        "Producers.doubt",
        "recent.in_doubt = True",
        "recent.in_doubt = False",
    ),
    Mutant(
        "refused frame remembered",
        "a frame that found no room counts as stored, so the next one with its sequence is lost",
        "Producers.taken_back",
        "recent.last = sequence - 1",
        "",
    ),
    Mutant(
        "damaged range never passed",
        "a read stands still before what it cannot read",
        "ChunkBuilder.damage",
        "self._pieces",
        "end",
    ),
    Mutant(
        "damage passed without a word",
        "a group goes on behind damaged records, or was to stay before them, and nobody is told",
        "RecordStates.not_done",
        "without(ranges, self.consumed.done())",
        "()",
    ),
    Mutant(
        "skipped offsets not acknowledged",
        "what is damaged or lost holds the ack floor",
        "DeliveredStream._take_on",
        "self.records.consumed.pass_by(chunk, ((chunk.offset, chunk.next),))",
        "pass",
    ),
    Mutant(
        "offsets of bad bytes given again",
        "a stream goes on at the last frame that can be read, whatever lay behind it",
        "_claimed_end",
        "end + loss.bytes",
        "end",
    ),
    Mutant(
        "bad bytes held nothing of a stream without frames",
        "a stream of which no frame is left begins at 0 again, below the floors of its groups",
        "_claimed_end",
        "end + loss.bytes",
        "end + loss.bytes if end else end",
    ),
)
