"""Mistakes in what operators ask of members and grants."""

from dss_sim.mutants.planting import Mutant

IN_OPERATIONS = (
    Mutant(
        "pin not stored",
        "a transfer is reported done, and the next leader gives the stream to another member",
        "takeover.stream_writes",
        "record.grant.pinned_session_id",
        "None",
    ),
    Mutant(
        "evicted before it let go",
        "an evicted member is ended while it still hands out what it was lent",
        "evictions.end_evicted",
        "not member.streams",
        "True",
    ),
)
