"""Mistakes about one stream, as its leader lends it: `leader.stream`, `leader.stream_acts`."""

from dss_sim.mutants.planting import Mutant

IN_LENDING = (
    Mutant(
        "grant before commit",
        "a grant leaves before its epoch is durable",
        "machines/leader/stream.py",
        """    state.durable = False
    state.grant_unsaved = True
    return (Act.SAVE_NOW,)""",
        """    state.durable = True
    state.grant_unsaved = True
    return (Act.SAVE_NOW, Act.SEND_GRANT)""",
    ),
    Mutant(
        "revoked before commit",
        "the holder is told that its final progress is durable while it is not",
        "machines/leader/stream.py",
        """        state.state = StreamState.REVOKED
        state.durable = False
        return (Act.SAVE_NOW,)
    return (Act.SAVE_SOON,) if fresh""",
        """        state.state = StreamState.REVOKED
        state.durable = False
        return (Act.SAVE_NOW, Act.SEND_REVOKED)
    return (Act.SAVE_SOON,) if fresh""",
    ),
    Mutant(
        "freed at the revoke",
        "a stream is given on before the final progress of its holder",
        "machines/leader/stream.py",
        """    state.heir = event.heir
    return (Act.SEND_REVOKE,)""",
        """    state.heir = event.heir
    return (Act.SEND_REVOKE, *_end(state))""",
    ),
    Mutant(
        "epoch not checked",
        "a late report of an older grant to the same borrower counts for the present one",
        "machines/leader/stream.py",
        "    return event.borrower_id == state.holder and event.report.grant_epoch == "
        "state.grant_epoch",
        "    return event.borrower_id == state.holder",
    ),
    Mutant(
        "holder not checked",
        "a report counts from whoever sends it (EMQX: progress overwritten by anyone)",
        "machines/leader/stream.py",
        "    return event.borrower_id == state.holder and event.report.grant_epoch == "
        "state.grant_epoch",
        "    return True",
    ),
    Mutant(
        "progress overwritten",
        "a late report takes back what a newer one said (EMQX stores unconditionally)",
        "machines/leader/stream.py",
        "    progress = state.progress.merged(report.progress)",
        "    progress = report.progress",
    ),
    Mutant(
        "attempts overwritten",
        "a late report takes back known hand-outs",
        "machines/leader/stream.py",
        "    attempts = merged_attempts(state.attempts, report.attempts, progress)",
        "    attempts = report.attempts",
    ),
    Mutant(
        "frontier overwritten",
        "a late report takes back the hand-out frontier",
        "machines/leader/stream.py",
        "    frontier = max(state.frontier, report.frontier)",
        "    frontier = report.frontier",
    ),
    Mutant(
        "grant not sent again",
        "a lost grant is never repeated (EMQX 6: stuck until the borrower is dropped)",
        "machines/leader/stream.py",
        "(_S.GRANTING, ResendDue): _grant_again,",
        "(_S.GRANTING, ResendDue): ignore,",
    ),
    Mutant(
        "revoke not sent again",
        "a lost revoke is never repeated",
        "machines/leader/stream.py",
        "(_S.REVOKING, ResendDue): _revoke_again,",
        "(_S.REVOKING, ResendDue): ignore,",
    ),
    Mutant(
        "revoked not sent again",
        "that a stream is taken back is said once, and the holder may not hear it",
        "machines/leader/stream.py",
        "(_S.REVOKED, ResendDue): _revoked_again,",
        "(_S.REVOKED, ResendDue): ignore,",
    ),
    Mutant(
        "death without doubt",
        "what a dead holder may have handed out unreported comes again unmarked",
        "machines/leader/stream.py",
        """def _lose_holder(state: LentStream, event: HolderLost) -> Acts:
    state.unmeasured = True
""",
        """def _lose_holder(state: LentStream, event: HolderLost) -> Acts:
""",
    ),
    Mutant(
        "absence without doubt",
        "what a holder of the leader before may have handed out comes again unmarked",
        "machines/leader/stream.py",
        """    state.reserved = False
    state.unmeasured = True
    return (Act.PLACE,)""",
        """    state.reserved = False
    return (Act.PLACE,)""",
    ),
    Mutant(
        "release without doubt",
        "a holder that drops a stream unreported is believed to have handed out nothing",
        "machines/leader/stream.py",
        """        return ()
    state.unmeasured = True
    return _end(state)""",
        """        return ()
    return _end(state)""",
    ),
    Mutant(
        "doubt never measured",
        "how far a dead holder may have come is asked for and not noted",
        "machines/leader/stream.py",
        "        state.suspect_end = max(state.suspect_end, event.measured_end)\n",
        "",
    ),
    Mutant(
        "doubt not stored",
        "the stored grant names no holder, so the next leader knows of no doubt",
        "machines/leader/stream.py",
        "self.holder if doubtful else None",
        "None",
    ),
    Mutant(
        "final report without its end",
        "what was sent beyond the frontier at a final report comes again unmarked",
        "machines/leader/stream.py",
        "        _note_sent(state, event.report.sent if event.final else state.progress.floor)\n",
        "",
    ),
    Mutant(
        "adoption forgets the grant",
        "a new leader does not adopt the holder that presents its epoch",
        "machines/leader/stream.py",
        "    if state.reserved and not event.final:",
        "    if False:",
    ),
    Mutant(
        "grant epoch not raised",
        "a stream is lent again under the epoch of the grant before",
        "machines/leader/stream.py",
        "    state.grant_epoch += 1\n",
        "",
    ),
    Mutant(
        "finished granted again",
        "a stream that is consumed to its sealed end is lent again (EMQX 5.9: for ever)",
        "machines/leader/stream.py",
        """    state.grant_unsaved = True
    if state.is_at_end():""",
        """    state.grant_unsaved = True
    if False:""",
    ),
    Mutant(
        "commit covers what changed since",
        "what came during a commit counts as durable by it",
        "machines/leader/stream_acts.py",
        "            current = stream not in state.dirty\n",
        "            current = True\n",
    ),
    Mutant(
        "two commits at once",
        "a commit begins while the one before is under way, whose answer is then lost",
        "machines/leader/stream_acts.py",
        " or state.is_committing() or not due:",
        " or not due:",
    ),
    Mutant(
        "deadline never set",
        "a holder that never answers a revoke keeps the stream (EMQX 6)",
        "machines/leader/stream_acts.py",
        "    if lent.state in LIMITED:",
        "    if False:",
    ),
    Mutant(
        "deadline shared",
        "all streams share one deadline, which each revoke moves on",
        "machines/leader/stream_acts.py",
        "state.timers.set(Limit(lent.stream), turn.now_ms +",
        "state.timers.set(Limit(state.order[0]), turn.now_ms +",
    ),
    Mutant(
        "imbalance after a seal",
        "finished streams leave their holders with less than the others, for good",
        "machines/leader/stream_acts.py",
        """        case Act.SHARE_ANEW:
            rebalance_by(turn, turn.now_ms + turn.state.timing.gather_ms)""",
        """        case Act.SHARE_ANEW:
            pass""",
    ),
    Mutant(
        "streams beyond a commit forgotten",
        "what a commit does not take at once is taken by none",
        "machines/leader/stream_acts.py",
        "    for lent in chosen:\n        del state.dirty[lent.stream]\n",
        "    state.dirty.clear()\n",
    ),
    Mutant(
        "moves beyond a step forgotten",
        "of a rebalance only what one step begins is begun",
        "machines/leader/rebalance.py",
        "        _begin_move(turn, *state.moves.popleft())\n",
        "        _begin_move(turn, *state.moves.popleft())\n    state.moves.clear()\n",
    ),
    Mutant(
        "reports gathered for long",
        "what was acknowledged for seconds comes again after a crash",
        "machines/leader/stream_acts.py",
        "        gather_ms = max(state.timing.commit_ms, slow_ms)",
        "        gather_ms = 10_000",
    ),
    Mutant(
        "final report doubted",
        "a holder that says how far it came is believed no more than a dead one",
        "machines/leader/stream.py",
        "        _note_sent(state, event.report.sent if event.final else state.progress.floor)",
        "        _note_sent(state, None)",
    ),
)
