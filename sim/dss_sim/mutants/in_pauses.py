"""Mistakes about paused groups, on the way from the leader to the client and back."""

from dss_sim.mutants.planting import Mutant

SHELLS = "dss_sim.sessions.run"

IN_PAUSES = (
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
)
