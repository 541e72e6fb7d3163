"""Mistakes about members, allocation, time and leadership: `machines.leader` and its claim."""

from dss_sim.mutants.planting import Mutant

IN_LEADERS = (
    Mutant(
        "ping answered to strangers",
        "a borrower that is no member lives on without streams (EMQX 6: zombie)",
        "machines/leader/machine.py",
        "    if member is None and not isinstance(message, LeaderWanted | Disconnect):",
        "    if member is None and not isinstance(message, LeaderWanted | Disconnect | Ping):",
    ),
    Mutant(
        "departed admitted again",
        "a late request of a borrower that is gone makes it a member that never speaks",
        "machines/leader/machine.py",
        "    if message.borrower_id in state.departed:",
        "    if False:",
    ),
    Mutant(
        "gathering never ends",
        "joins wait for a rebalance that does not come",
        "machines/leader/machine.py",
        """        case Alarm.REBALANCE:
            rebalance_by(turn, turn.now_ms)""",
        """        case Alarm.REBALANCE:
            pass""",
    ),
    Mutant(
        "leases extended by others",
        "any traffic keeps dead members alive (EMQX 6: one timer restarted by every message)",
        "machines/leader/machine.py",
        """    if member is not None:
        _extend_lease(turn, member)
    MESSAGES""",
        """    for member in state.members.values():
        _extend_lease(turn, member)
    MESSAGES""",
    ),
    Mutant(
        "lease never ends",
        "a member that died without a word keeps its streams",
        "machines/leader/machine.py",
        "            _remove_member(turn, member, rebalance_at_ms=turn.now_ms)\n"
        "            turn.send(",
        "            turn.send(",
    ),
    Mutant(
        "lease ends early",
        "the leader gives up a member while that one still hands out (EMQX 5.9: 2 to 3 s)",
        "machines/leader/machine.py",
        "    ends_ms = turn.now_ms + turn.state.timing.lease_ms\n",
        "    ends_ms = turn.now_ms + turn.state.timing.lease_ms // 2\n",
    ),
    Mutant(
        "only a fresh connect admits",
        "a repeated request whose answer was lost is not answered again",
        "machines/leader/machine.py",
        "    if message.borrower_id not in state.members:\n        member = Member(",
        "    if message.borrower_id in state.members:\n"
        "        _take_reports(turn, message.borrower_id, message.held, final=False)\n"
        "        return\n"
        "    else:\n        member = Member(",
    ),
    Mutant(
        "goodbye without progress",
        "what a leaving member reports last is not taken",
        "machines/leader/machine.py",
        "        turn_stream(turn, lent, Reported(message.borrower_id, report, final=True))\n",
        "",
    ),
    Mutant(
        "goodbye from the middle of a takeover ends exactly",
        "a holder that leaves while its stream is kept for it leaves no doubt",
        "machines/leader/machine.py",
        "            _note_doubt(lent, report)\n",
        "",
    ),
    Mutant(
        "nothing kept after a takeover",
        "a new leader gives streams on whose holders still hand out",
        "machines/leader/machine.py",
        "        lent.reserved = kept and lent.state is StreamState.FREE\n",
        "        lent.reserved = False\n",
    ),
    Mutant(
        "kept for holders as for sessions",
        "a new leader gives streams on before the leases of their holders have ended",
        "machines/leader/machine.py",
        "        kept_ms = state.timing.reserve_ms if given.restarted else state.timing.lease_ms\n",
        "        kept_ms = state.timing.reserve_ms\n",
    ),
    Mutant(
        "new stream not allocated",
        "a stream that is born is granted to nobody",
        "machines/leader/machine.py",
        """            lent.since_ms = turn.now_ms
            rebalance_by(turn, turn.now_ms)""",
        """            lent.since_ms = turn.now_ms""",
    ),
    Mutant(
        "removed stream stays in the books",
        "a member still counts a stream whose topic was removed",
        "machines/leader/machine.py",
        "        state.members[lent.holder].streams.discard(stream)\n",
        "",
    ),
    Mutant(
        "foreign session joins an exclusive group",
        "the owner of an exclusive group is not checked",
        "machines/leader/machine.py",
        "    if state.owner_session is not None and message.session_id != state.owner_session:",
        "    if False:",
    ),
    Mutant(
        "everything moves",
        "each join deals all streams anew (EMQX 6)",
        "machines/leader/allocation.py",
        "        loose.extend(held[member][quota:])\n",
        "        loose.extend(held[member])\n        held[member] = []\n",
    ),
    Mutant(
        "unequal shares",
        "the odd streams go to one member",
        "machines/leader/allocation.py",
        "    return {member: share + (member in larger) for member in held}",
        "    return {member: share + odd * (member == by_owned[0]) for member in held}",
    ),
    Mutant(
        "claim without a new epoch",
        "a leader begins under the epoch of the one before",
        "leaders/takeover.py",
        "        epoch = known.row.leader_epoch + 1\n",
        "        epoch = known.row.leader_epoch\n",
    ),
    Mutant(
        "commit without fence",
        "the commits of a leader do not depend on its leadership",
        "leaders/takeover.py",
        "        return VersionIs(LeaderRow, (self.row.group_id,), self.version)",
        "        return Exists(LeaderRow, (self.row.group_id,))",
    ),
    Mutant(
        "frontier not stored",
        "after a takeover, records that were handed out come again unmarked",
        "leaders/takeover.py",
        "        frontier=record.frontier,\n",
        "        frontier=record.progress.floor,\n",
    ),
    Mutant(
        "acked ranges not stored",
        "what is acknowledged above the floor does not survive a takeover",
        "leaders/takeover.py",
        "        ranges=packed_ranges(record.progress.ranges),\n",
        "        ranges=packed_ranges(()),\n",
    ),
    Mutant(
        "attempts not stored",
        "known hand-outs do not survive a takeover, so a poison record is never known",
        "leaders/takeover.py",
        "        attempts=packed_attempts(record.attempts),\n",
        "        attempts=packed_attempts(()),\n",
    ),
    Mutant(
        "takeover taken for a restart",
        "a new leader of the same process gives streams on after a second",
        "leaders/takeover.py",
        "    restarted = known is not None and known.row.boot_id != boot_id\n",
        "    restarted = known is not None\n",
    ),
    Mutant(
        "leaving members get more",
        "what becomes free is lent to a member that is leaving",
        "machines/leader/machine.py",
        "        member.leaving = True\n",
        "",
    ),
    Mutant(
        "timers beyond a step forgotten",
        "of what is due at once only what one step looks at is done",
        "machines/leader/machine.py",
        "    for timer in turn.state.timers.due(given.now_ms, TIMERS_A_STEP_MAX):\n",
        "    for timer in turn.state.timers.due(given.now_ms)[:TIMERS_A_STEP_MAX]:\n",
    ),
    Mutant(
        "nothing due behind what was cleared",
        "a leader with many deadlines that hold no more believes that none does",
        "machines/deadlines.py",
        "        return self._heap[0][0] if self._heap else None\n",
        "        return None\n",
    ),
    Mutant(
        "lease three times as long",
        "a leader keeps the streams of a dead member for longer than it says",
        "machines/leader/machine.py",
        "    ends_ms = turn.now_ms + turn.state.timing.lease_ms",
        "    ends_ms = turn.now_ms + 3 * turn.state.timing.lease_ms",
    ),
    Mutant(
        "death gathered",
        "what a closed connection held waits for others to come or go",
        "machines/leader/machine.py",
        "        _remove_member(turn, state.members[borrower_id], rebalance_at_ms=turn.now_ms)",
        "        at_ms = turn.now_ms + 8_000\n"
        "        _remove_member(turn, state.members[borrower_id], rebalance_at_ms=at_ms)",
    ),
)
