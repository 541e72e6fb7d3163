"""Mistakes of the lease protocol, on both its sides: `dssd.core.lease`."""

from dss_sim.mutants.planting import Mutant

IN_LEASE = (
    Mutant(
        "set before its version is durable",
        "a set leaves while the commit of its version is under way",
        "core/lease/sets.py",
        "    member_set.durable = False\n",
        "",
    ),
    Mutant(
        "version given twice",
        "the versions of a session begin anew with each set",
        "core/lease/sets.py",
        "    version = leases.counters.get(member_set.session_id, 0) + 1\n",
        "    version = 1\n",
    ),
    Mutant(
        "taken over in silence",
        "an update does not name the streams that are taken over",
        "core/lease/sets.py",
        "        if lent.state in TAKEN\n    )\n    return UpdateStreams",
        "        if False\n    )\n    return UpdateStreams",
    ),
    Mutant(
        "taken over is fully acked",
        "a stream is free as soon as its holder answers that it is taken over",
        "core/leader.py",
        "            _take_reports(turn, borrower_id, (taken.report,), final=taken.fully_acked)\n",
        "            leases.sets[borrower_id].returned[taken.report.stream] = "
        "taken.report.grant_epoch\n"
        "            _take_reports(turn, borrower_id, (taken.report,), final=True)\n",
    ),
    Mutant(
        "taken over but delivered",
        "a stream that is taken over is read on",
        "core/lease/borrower.py",
        "            grants.finish(held, taken.deadline_ms, effects)\n",
        "            held.revoking = True\n",
    ),
    Mutant(
        "lease of a set from receipt",
        "the lease runs from the receipt of a renewal, not from what the leader heard",
        "core/lease/speaking.py",
        "    if heard_ms > now_ms:\n        return\n",
        "    heard_ms = now_ms\n",
    ),
    Mutant(
        "renewal without a set",
        "a lost update is not noticed when a renewal is asked for",
        "core/lease/sets.py",
        "(again or not shown):",
        "again:",
    ),
    Mutant(
        "set while leaving",
        "a set for a borrower that is leaving waits until that one is gone",
        "core/lease/borrower.py",
        "    (_S.UNSUBSCRIBING, UpdateStreams): _decline,\n",
        "    (_S.UNSUBSCRIBING, UpdateStreams): ignore_message,\n",
    ),
)
