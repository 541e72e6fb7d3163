"""Mistakes about one stream, as its leader lends it: `leader/stream`, `leader/stream_acts`."""

from dss_sim.mutants.planting import Mutant

IN_LENDING = (
    Mutant(
        "grant before commit",
        "a grant leaves before its epoch is durable",
        "_lend",
        """
        state.durable = False
        state.grant_unsaved = True
        return (Act.SAVE_NOW,)
        """,
        """
        state.durable = True
        state.grant_unsaved = True
        return (Act.SAVE_NOW, Act.SEND_GRANT)
        """,
    ),
    Mutant(
        "revoked before commit",
        "the holder is told that its final progress is durable while it is not",
        "leader.stream._report",
        """
        state.durable = False
        return (Act.SAVE_NOW,)
        """,
        """
        state.durable = False
        return (Act.SAVE_NOW, Act.SEND_REVOKED)
        """,
    ),
    Mutant(
        "freed at the revoke",
        "a stream is given on before the final progress of its holder",
        "leader.stream._revoke",
        "(Act.SEND_REVOKE,)",
        "(Act.SEND_REVOKE, *end(state))",
    ),
    Mutant(
        "epoch not checked",
        "a late report of an older grant to the same borrower counts for the present one",
        "_is_holders",
        "event.borrower_id == state.holder and event.report.grant_epoch == state.grant_epoch",
        "event.borrower_id == state.holder",
    ),
    Mutant(
        "holder not checked",
        "a report counts from whoever sends it (EMQX: progress overwritten by anyone)",
        "_is_holders",
        "event.borrower_id == state.holder and event.report.grant_epoch == state.grant_epoch",
        "True",
    ),
    Mutant(
        "progress overwritten",
        "a late report takes back what a newer one said (EMQX stores unconditionally)",
        "_merge",
        "state.progress.merged(report.progress)",
        "report.progress",
    ),
    Mutant(
        "attempts overwritten",
        "a late report takes back known hand-outs",
        "_merge",
        "merged_attempts(state.attempts, report.attempts, progress)",
        "report.attempts",
    ),
    Mutant(
        "frontier overwritten",
        "a late report takes back the hand-out frontier",
        "_merge",
        "max(state.frontier, report.frontier)",
        "report.frontier",
    ),
    Mutant(
        "grant not sent again",
        "a lost grant is never repeated (EMQX 6: stuck until the borrower is dropped)",
        "leader.stream.TRANSITIONS",
        "_grant_again",
        "ignore",
    ),
    Mutant(
        "revoke not sent again",
        "a lost revoke is never repeated",
        "leader.stream.TRANSITIONS",
        "_revoke_again",
        "ignore",
    ),
    Mutant(
        "revoked not sent again",
        "a holder is told once that its stream is taken back, and the message may be lost",
        "leader.stream.TRANSITIONS",
        "_revoked_again",
        "ignore",
    ),
    Mutant(
        "death without doubt",
        "records that a dead holder may have handed out unreported come again unmarked",
        "_lose_holder",
        "_lose_sight(state)",
        "",
    ),
    Mutant(
        "absence without doubt",
        "records that a holder of the earlier leader may have handed out come again unmarked",
        "_give_up_holder",
        "_lose_sight(state)",
        "",
    ),
    Mutant(
        "release without doubt",
        "a holder that drops a stream without a report counts as having handed out nothing",
        "_release_doubtful",
        "_lose_sight(state)",
        "",
    ),
    Mutant(
        "doubt never measured",
        "how far a dead holder may have come is read and not noted",
        "leader.stream_ends.note_saved",
        "state.suspect_end = max(state.suspect_end, event.measured_end)",
        "",
    ),
    Mutant(
        "doubt not stored",
        "the stored grant names no holder, so the next leader knows of no doubt",
        "LentStream.record",
        "self.holder if doubtful else None",
        "None",
    ),
    Mutant(
        "final report without its end",
        "records sent beyond the frontier of a final report come again unmarked",
        "leader.stream._report",
        "_note_sent(state, event.report.sent if event.final else state.progress.floor)",
        "",
    ),
    Mutant(
        "adoption forgets the grant",
        "a new leader does not adopt the holder that presents its epoch",
        "_report_free",
        "state.reserved and not event.final",
        "False",
    ),
    Mutant(
        "grant epoch not raised",
        "a stream is lent again under the epoch of the grant before",
        "_lend",
        "state.grant_epoch += 1",
        "",
    ),
    Mutant(
        "finished granted again",
        "a stream that is consumed to its sealed end is lent again (EMQX 5.9: for ever)",
        "leader.stream_ends.end",
        "state.is_over()",
        "False",
    ),
    Mutant(
        "commit covers what changed since",
        "reports that arrive during a commit count as durable when it is",
        "take_committed",
        "stream not in state.dirty",
        "True",
    ),
    Mutant(
        "two commits at once",
        "a commit begins while an earlier one is under way, and the earlier answer is lost",
        "commit_if_due",
        "not (state.dirty or stream_sets.is_waiting(state)) or state.is_committing() or not due",
        "not (state.dirty or stream_sets.is_waiting(state)) or not due",
    ),
    Mutant(
        "deadline never set",
        "a holder that never answers a revoke keeps the stream (EMQX 6)",
        "_note_state",
        "lent.state in ENDED_BY_DEADLINE",
        "False",
    ),
    Mutant(
        "deadline shared",
        "all streams share one deadline, which each revoke moves on",
        "_note_state",
        """
        state.timers.set(StateDeadline(lent.stream), turn.now_ms + _within_ms(state, lent))
        """,
        """
        state.timers.set(StateDeadline(state.order[0]), turn.now_ms + _within_ms(state, lent))
        """,
    ),
    Mutant(
        "imbalance after a seal",
        "finished streams leave their holders with less than the others, for good",
        "_act",
        "rebalance_by(turn, turn.now_ms + turn.state.timing.gather_ms)",
        "pass",
    ),
    Mutant(
        "streams beyond a commit forgotten",
        "streams that do not fit into a commit are never committed",
        "commit_if_due",
        """
        for lent in chosen:
            del state.dirty[lent.stream]
        """,
        "state.dirty.clear()",
    ),
    Mutant(
        "moves beyond a step forgotten",
        "of a rebalance only the first step's moves are ever begun",
        "begin_moves",
        """
        for _ in range(min(len(state.moves), MOVES_A_STEP_MAX)):
            _begin_move(turn, *state.moves.popleft())
        """,
        """
        for _ in range(min(len(state.moves), MOVES_A_STEP_MAX)):
            _begin_move(turn, *state.moves.popleft())
        state.moves.clear()
        """,
    ),
    Mutant(
        "reports gathered for long",
        "records acknowledged within the last seconds come again after a crash",
        "mark_dirty",
        "max(state.timing.commit_ms, slow_ms)",
        "10_000",
    ),
    Mutant(
        "final report doubted",
        "records count as in doubt even though the holder reported how far it came",
        "leader.stream._report",
        "event.report.sent if event.final else state.progress.floor",
        "None",
    ),
)
