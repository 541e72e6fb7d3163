"""Mistakes about members, allocation, time and leadership: `machines.leader`, `takeover`."""

from dss_sim.mutants.planting import Mutant

IN_LEADERS = (
    Mutant(
        "ping answered to strangers",
        "a borrower that is no member lives on without streams (EMQX 6: zombie)",
        "receiving.receive",
        "LeaderWanted | Disconnect",
        "LeaderWanted | Disconnect | Ping",
    ),
    Mutant(
        "departed admitted again",
        "a late request of a borrower that is gone makes it a member that never speaks",
        "receiving._why_not",
        "borrower_id in state.departed",
        "False",
    ),
    Mutant(
        "shards not kept apart",
        "somebody is given records of a shard by which another program keeps state",
        "sharding.may_have",
        "return not apart",
        "return True",
    ),
    Mutant(
        "epoch of a shard given twice",
        "a frozen member writes by shard under the same epoch as the shard's new holder",
        "sharding._epoch",
        "state.shards.given += 1",
        "state.shards.given = 1",
    ),
    Mutant(
        "former shards forgotten",
        "at another count somebody is given records of a shard that a program has not given back",
        "sharding._cut_anew",
        "state.shards.former[lent.shard] += 1",
        "pass",
    ),
    Mutant(
        "strays stay",
        "after another count the streams of a shard stay with several members",
        "shard_allocation._moves",
        "now.owners.get(stream) != member",
        "stream not in now.owners",
    ),
    Mutant(
        "lent as sessions end",
        "a stopping daemon lends streams on though their old clients may not know of the loss yet",
        "stream_acts.lend",
        "turn.state.sessions_ending",
        "False",
    ),
    Mutant(
        "gathering never ends",
        "joins wait for a rebalance that never happens",
        "leader.machine._ring",
        "rebalance_by(turn, turn.now_ms)",
        "pass",
    ),
    Mutant(
        "leases extended by others",
        "any traffic keeps dead members alive (EMQX 6: one timer restarted by every message)",
        "receiving.receive",
        """
        if member is not None:
            extend_lease(turn, member)
        """,
        """
        for member in state.members.values():
            extend_lease(turn, member)
        """,
    ),
    Mutant(
        "lease never ends",
        "a member that died without a word keeps its streams",
        "leader.machine._fire",
        "remove_member(turn, member, rebalance_at_ms=turn.now_ms)",
        "",
    ),
    Mutant(
        "lease ends early",
        "the leader gives up a member while that one still hands out (EMQX 5.9: 2 to 3 s)",
        "members.extend_lease",
        "turn.state.timing.lease_ms",
        "turn.state.timing.lease_ms // 2",
    ),
    Mutant(
        "only a fresh connect admits",
        "a request that is repeated because its answer was lost gets no answer",
        "receiving._admit",
        """
        if state.stream_sets is not None:
            _take_presented(turn, state.stream_sets, message)
            return
        """,
        """
        if state.members[message.borrower_id].joined_ms != turn.now_ms:
            _take_reports(turn, message.borrower_id, message.held, final=False)
            return
        if state.stream_sets is not None:
            _take_presented(turn, state.stream_sets, message)
            return
        """,
    ),
    Mutant(
        "goodbye without progress",
        "the last report of a leaving member is ignored",
        "_take_goodbye",
        "turn_stream(turn, lent, Reported(message.borrower_id, report, final=True))",
        "",
    ),
    Mutant(
        "goodbye from the middle of a takeover ends exactly",
        "a holder that leaves while its stream is kept for it leaves no doubt",
        "_take_goodbye",
        "_note_doubt(lent, report)",
        "",
    ),
    Mutant(
        "nothing kept after a takeover",
        "a new leader gives streams on whose holders still hand out",
        "leader.machine._take_over",
        "kept and lent.state is StreamState.FREE",
        "False",
    ),
    Mutant(
        "kept for holders as for sessions",
        "a new leader gives streams on before the leases of their holders have ended",
        "leader.machine._take_over",
        "state.timing.reserve_ms if given.restarted else state.timing.lease_ms",
        "state.timing.reserve_ms",
    ),
    Mutant(
        "new stream not allocated",
        "a stream that is born is granted to nobody",
        "_change_streams",
        "rebalance_by(turn, turn.now_ms)",
        "",
    ),
    Mutant(
        "removed stream stays in the books",
        "a member still counts a stream whose topic was removed",
        "_forget_stream",
        "state.members[lent.holder].streams.discard(stream)",
        "",
    ),
    Mutant(
        "foreign session joins an exclusive group",
        "the owner of an exclusive group is not checked",
        "receiving._why_not",
        "state.owner_session is not None and message.session_id != state.owner_session",
        "False",
    ),
    Mutant(
        "everything moves",
        "each join deals all streams anew (EMQX 6)",
        "sticky",
        "loose.extend(held[member][quota:])",
        """
        loose.extend(held[member])
        held[member] = []
        """,
    ),
    Mutant(
        "unequal shares",
        "the odd streams go to one member",
        "_quotas",
        "member in larger",
        "odd * (member == by_owned[0])",
    ),
    Mutant(
        "claim without a new epoch",
        "a leader begins under the epoch of the one before",
        "next_takeover",
        "known.row.leader_epoch + 1",
        "known.row.leader_epoch",
    ),
    Mutant(
        "commit without fence",
        "the commits of a leader do not depend on its leadership",
        "Takeover.still_holds",
        "VersionIs(LeaderRow, (self.row.group_id,), self.version)",
        "Exists(LeaderRow, (self.row.group_id,))",
    ),
    Mutant(
        "frontier not stored",
        "after a takeover, records that were handed out come again unmarked",
        "_progress_row",
        "record.frontier",
        "record.progress.floor",
    ),
    Mutant(
        "acked ranges not stored",
        "what is acknowledged above the floor does not survive a takeover",
        "_progress_row",
        "record.progress.ranges",
        "()",
    ),
    Mutant(
        "attempts not stored",
        "known hand-outs do not survive a takeover, so a poison record is never known",
        "_progress_row",
        "record.attempts",
        "()",
    ),
    Mutant(
        "takeover taken for a restart",
        "a new leader of the same process gives streams on after a second",
        "next_takeover",
        "known is not None and known.row.boot_id != boot_id",
        "known is not None",
    ),
    Mutant(
        "leaving members get more",
        "free streams are lent to a member that is leaving",
        "note_leaving",
        "member.leaving = True",
        "",
    ),
    Mutant(
        "timers beyond a step forgotten",
        "of many timers due at once only those of the first step fire",
        "leader.machine._tick",
        "turn.state.timers.each_due(given.now_ms, TIMERS_A_STEP_MAX)",
        "turn.state.timers.due(given.now_ms)[:TIMERS_A_STEP_MAX]",
    ),
    Mutant(
        "nothing due behind what was cleared",
        "a leader with many outdated deadlines believes that it has none at all",
        "Deadlines.next_ms",
        "self._heap[0][0] if self._heap else None",
        "None",
    ),
    Mutant(
        "lease three times as long",
        "a leader keeps the streams of a dead member for longer than it says",
        "members.extend_lease",
        "turn.state.timing.lease_ms",
        "3 * turn.state.timing.lease_ms",
    ),
    Mutant(
        "death gathered",
        "streams of a closed connection stay free until another member comes or goes",
        "members.close_session",
        "remove_member(turn, state.members[borrower_id], rebalance_at_ms=turn.now_ms)",
        """
        at_ms = turn.now_ms + 8_000
        remove_member(turn, state.members[borrower_id], rebalance_at_ms=at_ms)
        """,
    ),
)
