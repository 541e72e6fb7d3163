"""Mistakes of the lease protocol, on both its sides: the lease machine and its stream sets."""

from dss_sim.mutants.planting import Mutant

IN_LEASE = (
    Mutant(
        "set before its version is durable",
        "a set leaves while the commit of its version is under way",
        "machines/leader/stream_sets.py",
        "    member_set.durable = False\n",
        "",
    ),
    Mutant(
        "version given twice",
        "the versions of a session begin anew with each set",
        "machines/leader/stream_sets.py",
        "    version = leases.counters.get(member_set.session_id, 0) + 1\n",
        "    version = 1\n",
    ),
    Mutant(
        "taken over in silence",
        "an update does not name the streams that are taken over",
        "machines/leader/stream_sets.py",
        "        if lent.state in TAKEN\n    )\n    return UpdateStreams",
        "        if False\n    )\n    return UpdateStreams",
    ),
    Mutant(
        "taken over is fully acked",
        "a stream is free as soon as its holder answers that it is taken over",
        "machines/leader/machine.py",
        "            _take_reports(turn, borrower_id, (taken.report,), final=taken.final)\n",
        "            sets.by_member[borrower_id].returned[taken.report.stream] = "
        "taken.report.grant_epoch\n"
        "            _take_reports(turn, borrower_id, (taken.report,), final=True)\n",
    ),
    Mutant(
        "taken over but delivered",
        "a stream that is taken over is read on",
        "machines/borrower/lease_machine.py",
        "            grants.finish(held, taken.deadline_ms, effects)\n",
        "            held.revoking = True\n",
    ),
    Mutant(
        "lease of a set from receipt",
        "the lease runs from the receipt of a renewal, not from what the leader heard",
        "machines/borrower/lease_messages.py",
        "    if heard_ms > now_ms:\n        return\n",
        "    heard_ms = now_ms\n",
    ),
    Mutant(
        "renewal without a set",
        "a lost update is not noticed when a renewal is asked for",
        "machines/leader/stream_sets.py",
        "(again or not shown):",
        "again:",
    ),
    Mutant(
        "set while leaving",
        "a set for a borrower that is leaving waits until that one is gone",
        "machines/borrower/lease_machine.py",
        "    (_S.UNSUBSCRIBING, UpdateStreams): _decline,\n",
        "    (_S.UNSUBSCRIBING, UpdateStreams): ignore_message,\n",
    ),
)
