"""Mistakes of the lease protocol, on both its sides: the lease machine and its stream sets."""

from dss_sim.mutants.planting import Mutant

IN_LEASE = (
    Mutant(
        "set before its version is durable",
        "a set is sent while the commit of its version is under way",
        "stream_sets._make",
        "member_set.durable = False",
        "",
    ),
    Mutant(
        "version given twice",
        "the versions of a session begin anew with each set",
        "stream_sets._make",
        "sets.counters.get(member_set.session_id, 0) + 1",
        "1",
    ),
    Mutant(
        "taken over in silence",
        "an update does not name the streams that are taken over",
        "_set_message",
        "lent.state in TAKEN",
        "False",
    ),
    Mutant(
        "taken over is fully acked",
        "a stream is free as soon as its holder answers that it is taken over",
        "_take_states",
        "_take_reports(turn, borrower_id, (taken.report,), final=taken.final)",
        """
        sets.by_member[borrower_id].returned[taken.report.stream] = taken.report.grant_epoch
        _take_reports(turn, borrower_id, (taken.report,), final=True)
        """,
    ),
    Mutant(
        "taken over but delivered",
        "a stream that another member takes over is still read",
        "lease_machine._take_over",
        "grants.finish(held, taken.deadline_ms, effects)",
        "held.revoking = True",
    ),
    Mutant(
        "lease of a set from receipt",
        "the lease runs from the receipt of a renewal, not from the request that the leader got",
        "lease_machine._renew",
        "note_heard(state, message.heard_ms, now_ms, effects)",
        "note_heard(state, now_ms, now_ms, effects)",
    ),
    Mutant(
        "renewal without a set",
        "a lost update is not noticed when a renewal is asked for",
        "messages",
        "again or not shown",
        "again",
    ),
    Mutant(
        "set while leaving",
        "a set for a borrower that is leaving waits until that one is gone",
        "lease_machine.MESSAGES",
        "{(_S.UNSUBSCRIBING, UpdateStreams): _decline}",
        "{(_S.UNSUBSCRIBING, UpdateStreams): ignore_message}",
    ),
)
