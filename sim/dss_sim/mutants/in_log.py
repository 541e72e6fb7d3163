"""Mistakes of what the log remembers of producers, and of what it cannot read any more."""

from dss_sim.mutants.planting import Mutant

IN_LOG = (
    Mutant(
        "repeat stored again",
        "a frame that is sent again is stored again",
        "log/sequences.py",
        "            return recent.answers[ahead - 1]\n",
        "            return None\n",
    ),
    Mutant(
        "answer of another sequence",
        "a repeat is answered with the newest answer of its producer",
        "log/sequences.py",
        "            return recent.answers[ahead - 1]\n",
        "            return recent.answers[-1]\n",
    ),
    Mutant(
        "one answer remembered",
        "a producer may have more in flight than the daemon remembers answers",
        "log/sequences.py",
        "deque(maxlen=WINDOW)",
        "deque(maxlen=1)",
    ),
    Mutant(
        "marked sequences forgotten",
        "a start does not take from marks what producers had sent",
        "log/sequences.py",
        "            at = self._decode_entry(changes, at)\n",
        "            at = len(changes)\n",
    ),
    Mutant(
        "snapshot without answers",
        "what was stored before the active segment cannot be answered again after a start",
        "log/sequences.py",
        """    return entry + b"".join(_ANSWER.pack(*answer) for answer in recent.answers)""",
        """    return _ENTRY.pack(*key, recent.last, recent.time_us, answers & _IN_DOUBT)""",
    ),
    Mutant(
        "no doubt after a crash",
        "a producer whose frames went with the machine is shut out by a gap",
        "log/sequences.py",
        "            recent.in_doubt = True\n",
        "            recent.in_doubt = False\n",
    ),
    Mutant(
        "refused frame remembered",
        "a frame that found no room counts as stored, so the next one with its sequence is lost",
        "log/sequences.py",
        "        recent.last = sequence - 1\n\n    def forget_before",
        "\n    def forget_before",
    ),
    Mutant(
        "damaged range never passed",
        "a read stands still before what it cannot read",
        "log/read/chunk_builder.py",
        """        if self._pieces:
            self.full = True
            return
        self._damaged""",
        """        if end:
            self.full = True
            return
        self._damaged""",
    ),
    Mutant(
        "skipped offsets not acknowledged",
        "what is damaged or lost holds the ack floor",
        "machines/delivery/stream.py",
        "            self._pass(((chunk.offset, chunk.next),))\n",
        "            pass\n",
    ),
    Mutant(
        "offsets of bad bytes given again",
        "a stream goes on at the last frame that can be read, whatever lay behind it",
        "log/recovery/claimed_offsets.py",
        "    return end + loss.bytes",
        "    return end",
    ),
    Mutant(
        "bad bytes held nothing of a stream without frames",
        "a stream of which no frame is left begins at 0 again, below the floors of its groups",
        "log/recovery/claimed_offsets.py",
        "    return end + loss.bytes",
        "    return end + loss.bytes if end else end",
    ),
)
