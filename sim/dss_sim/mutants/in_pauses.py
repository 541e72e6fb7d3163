"""Mistakes about paused groups, on the way from the leader to the client and back."""

from dss_sim.mutants.planting import Mutant

SHELLS = "dss_sim.sessions.run"

IN_PAUSES = (
    Mutant(
        "pause done before it is obeyed",
        "an operator is told that a group is silent while its members still hand out",
        "leader.pausing.conclude_if_obeyed",
        "state.pausing and not state.telling and state.reserve is Reserve.NOTHING",
        "state.pausing",
    ),
    Mutant(
        "pause obeyed without the client",
        "a session confirms a pause while its client hands out what it holds",
        "borrower.pausing.note_pause",
        "known.paused, known.obeyed = pause.paused, False",
        "known.paused, known.obeyed = pause.paused, True",
    ),
    Mutant(
        "pause lifted by a lease",
        "a leader that answers again after a hiccup lets a paused group deliver",
        "fairness.Share.silent",
        "self.suspended or self.paused",
        "self.suspended",
    ),
    Mutant(
        "pause forgotten at a takeover",
        "a daemon that starts again leads a paused group as any other",
        "LeaderActor._load",
        "group.paused",
        "False",
        SHELLS,
    ),
    Mutant(
        "newcomer not told of a pause",
        "who joins a paused group consumes it",
        "leader.pausing.tell_newcomer",
        "turn.state.pause.paused or message.paused",
        "False",
    ),
    Mutant(
        "resume never told",
        "a group that was resumed stays silent",
        "leader.pausing.change_pause",
        "_tell(turn, borrower_id)",
        "asked.paused and _tell(turn, borrower_id)",
    ),
    Mutant(
        "end of a pause forgotten",
        "a pause until a time outlives it",
        "PauseEnds._note",
        "self._due.set(group.group_id, self._clock.now_ms() + left_ms)",
        "pass",
        SHELLS,
    ),
)
