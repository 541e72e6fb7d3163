"""Mistakes of the session's side of the group protocol: the borrower and its agent."""

from dss_sim.mutants.planting import Mutant

IN_BORROWERS = (
    Mutant(
        "lease from receipt",
        "the lease runs from the receipt of a ping's answer, not from the sending of the ping",
        "machines/borrower/borrow_machine.py",
        "    _extend_lease(state, message.sent_ms)\n",
        "    _extend_lease(state, now_ms)\n",
    ),
    Mutant(
        "connect response unknown",
        "a doubled answer to a request finds no entry (EMQX: crashed the connection)",
        "machines/borrower/borrow_machine.py",
        "    (_S.CONNECTED, LeaderConnectResponse): ignore_message,\n",
        "",
    ),
    Mutant(
        "connect response extends the lease",
        "a doubled answer to a request counts as a new one",
        "machines/borrower/borrow_machine.py",
        "    (_S.CONNECTED, LeaderConnectResponse): ignore_message,\n",
        "    (_S.CONNECTED, LeaderConnectResponse): _connect,\n",
    ),
    Mutant(
        "connected at receipt",
        "the first lease runs from the receipt of the answer to the request",
        "machines/borrower/borrow_machine.py",
        "        _extend_lease(state, wanted_ms)\n",
        "        _extend_lease(state, now_ms)\n",
    ),
    Mutant(
        "revoked answered once",
        "a stream that is not held is not said to be dropped (EMQX: the borrower is reset)",
        "machines/borrower/grants.py",
        "    if held_under(state, message.stream, message.grant_epoch) is not None:\n",
        "    if message.stream not in state.streams:\n"
        "        return\n"
        "    if held_under(state, message.stream, message.grant_epoch) is not None:\n",
    ),
    Mutant(
        "revoked without its progress",
        "the end of a grant makes durable whatever was reported under it",
        "machines/borrower/grants.py",
        "effects.append(ProgressDurable(message.stream, message.grant_epoch, message.progress))",
        "effects.append(ProgressDurable(message.stream, message.grant_epoch, "
        "state.streams[message.stream].report.progress))",
    ),
    Mutant(
        "revoke of an unknown stream ignored",
        "a borrower that never got a grant does not answer its revoke",
        "machines/borrower/borrow_machine.py",
        """    if held is None:
        grants.release(state, message.stream""",
        """    if message.stream not in state.streams:
        return
    if held is None:
        grants.release(state, message.stream""",
    ),
    Mutant(
        "invalid stream ends the borrower",
        "the loss of one stream costs all others",
        "machines/borrower/ending.py",
        "message.reason, effects)\n        return\n    final",
        "message.reason, effects)\n    final",
    ),
    Mutant(
        "late invalidate obeyed",
        "an invalidate of an older grant ends the present one",
        "machines/borrower/grants.py",
        "    if held is not None and held.report.grant_epoch <= grant_epoch:",
        "    if held is not None:",
    ),
    Mutant(
        "higher leader epoch ignored",
        "what is held is not presented to a new leader",
        "machines/borrower/borrow_machine.py",
        "    if known and state.state is BorrowerState.CONNECTED:",
        "    if False:",
    ),
    Mutant(
        "dead leader obeyed",
        "messages of a lower leader epoch count",
        "machines/borrower/borrow_machine.py",
        "    if message.borrower_id != state.borrower_id or "
        "message.leader_epoch < state.leader_epoch:",
        "    if message.borrower_id != state.borrower_id:",
    ),
    Mutant(
        "late grant installed again",
        "a doubled grant brings back a stream that was given up",
        "machines/borrower/grants.py",
        "    if granted.grant_epoch <= state.ended_epochs.get(granted.stream, 0):\n"
        "        return False\n",
        "",
    ),
    Mutant(
        "grant not confirmed",
        "a grant is answered only by the first progress",
        "machines/borrower/borrow_machine.py",
        """    if fresh:
        _send_reports""",
        """    if False:
        _send_reports""",
    ),
    Mutant(
        "report not sent again",
        "a lost report is repeated only by the next one",
        "machines/borrower/grants.py",
        "        send_again_later(state, held, given.now_ms)\n",
        "",
    ),
    Mutant(
        "any answer confirms a report",
        "a report counts as durable when an older one is",
        "machines/borrower/grants.py",
        "        saved == held.report.progress or saved.merged(held.report.progress) == saved\n",
        "        True\n",
    ),
    Mutant(
        "delivery goes on in silence",
        "a borrower hands out though its leader was silent for 0.6 leases",
        "machines/borrower/state.py",
        "        effects.append(SuspendDelivery())\n",
        "        pass\n",
    ),
    Mutant(
        "delivery not resumed",
        "a leader that answers again is not noticed",
        "machines/borrower/borrow_machine.py",
        "        effects.append(ResumeDelivery())\n",
        "        pass\n",
    ),
    Mutant(
        "lease never lost",
        "a borrower whose lease has ended keeps what it holds",
        "machines/borrower/borrow_machine.py",
        """        case Timer.LEASE:
            _lose_lease(state, effects)""",
        """        case Timer.LEASE:
            pass""",
    ),
    Mutant(
        "unsubscribing never times out",
        "a user that hangs keeps a subscription alive that was left",
        "machines/borrower/ending.py",
        "    state.timers.set(Timer.UNSUBSCRIBE, now_ms + UNSUBSCRIBE_MS)\n",
        "",
    ),
    Mutant(
        "ghost member",
        "an invalidate while unsubscribing makes a new borrower (EMQX)",
        "machines/borrower/borrow_machine.py",
        "    (_S.UNSUBSCRIBING, Invalidate): ending.invalidate_last,\n",
        "    (_S.UNSUBSCRIBING, Invalidate): ending.invalidate,\n",
    ),
    Mutant(
        "unsubscribed without final reports",
        "a subscription is left with what was reported last, whatever is out",
        "machines/borrower/borrow_machine.py",
        "    (_S.CONNECTED, Unsubscribed): _begin_unsubscribing,\n",
        "    (_S.CONNECTED, Unsubscribed): ending.leave,\n",
    ),
    Mutant(
        "leaving in silence",
        "a leader learns that a member leaves only when that one is gone",
        "machines/borrower/borrow_machine.py",
        "    _send_reports(state, unfinished, False, effects)\n",
        "",
    ),
    Mutant(
        "granted while leaving",
        "a grant to a borrower that is leaving waits until that one is gone",
        "machines/borrower/borrow_machine.py",
        "    (_S.UNSUBSCRIBING, Grant): _decline_grants,\n",
        "    (_S.UNSUBSCRIBING, Grant): ignore_message,\n",
    ),
    Mutant(
        "borrower's progress overwritten",
        "a final report forgets what the grant brought along",
        "machines/borrower/state.py",
        "    progress = known.progress.merged(report.progress)\n",
        "    progress = known.progress if final else known.progress.merged(report.progress)\n",
    ),
    Mutant(
        "final report not final",
        "that a final report was made is forgotten, so its repetition is an ordinary one",
        "machines/borrower/state.py",
        "        held.finished = True\n",
        "",
    ),
    Mutant(
        "end of what was sent forgotten",
        "a final report says nothing of what was sent beyond the frontier",
        "machines/borrower/state.py",
        "        sent = frontier if report.sent is None else max(report.sent, frontier)\n",
        "        sent = frontier\n",
    ),
    Mutant(
        "suspension outlives its borrower",
        "a new borrower delivers nothing because the one before was suspended",
        "subscriptions/agent.py",
        """                if not self.leaving:
                    self._delivery.resume(self.subscription)""",
        """                if not self.leaving:""",
    ),
)
