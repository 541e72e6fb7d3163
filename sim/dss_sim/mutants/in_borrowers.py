"""Mistakes of the session's side of the group protocol: the borrower and its agent."""

from dss_sim.mutants.planting import Mutant

IN_BORROWERS = (
    Mutant(
        "lease from receipt",
        "the lease runs from the receipt of a ping's answer, not from the sending of the ping",
        "borrow_machine._extend",
        "note_heard(state, message.sent_ms, now_ms, effects)",
        "note_heard(state, now_ms, now_ms, effects)",
    ),
    Mutant(
        "connect response unknown",
        "a doubled answer to a request finds no entry (EMQX: crashed the connection)",
        "borrow_machine.MESSAGES",
        "{(_S.CONNECTED, LeaderConnectResponse): ignore_message}",
        "{}",
    ),
    Mutant(
        "connect response extends the lease",
        "a doubled answer to a request counts as a new one",
        "borrow_machine.MESSAGES",
        "{(_S.CONNECTED, LeaderConnectResponse): ignore_message}",
        "{(_S.CONNECTED, LeaderConnectResponse): _connect}",
    ),
    Mutant(
        "connected at receipt",
        "the first lease runs from the receipt of the answer to the request",
        "borrow_machine._connect",
        "extend_lease(state, started_ms)",
        "extend_lease(state, now_ms)",
    ),
    Mutant(
        "revoked answered once",
        "a borrower does not confirm the loss of a stream it does not hold (EMQX: it is reset)",
        "revoked",
        """
        if held_under(state, message.stream, message.grant_epoch) is not None:
            effects.append(
                ProgressDurable(
                    message.stream, message.grant_epoch, message.progress, message.queues
                )
            )
        """,
        """
        if message.stream not in state.streams:
            return
        if held_under(state, message.stream, message.grant_epoch) is not None:
            effects.append(
                ProgressDurable(
                    message.stream, message.grant_epoch, message.progress, message.queues
                )
            )
        """,
    ),
    Mutant(
        "revoked without its progress",
        "the end of a grant makes durable whatever was reported under it",
        "revoked",
        "message.progress",
        "state.streams[message.stream].report.progress",
    ),
    Mutant(
        "revoke of an unknown stream ignored",
        "a borrower that never got a grant does not answer its revoke",
        "borrow_machine._revoke",
        "held = grants.held_under(state, message.stream, message.grant_epoch)",
        """
        held = grants.held_under(state, message.stream, message.grant_epoch)
        if message.stream not in state.streams:
            return
        """,
    ),
    Mutant(
        "invalid stream ends the borrower",
        "the loss of one stream costs all others",
        "ending.invalidate",
        """
        forget_up_to(state, message.stream, message.grant_epoch, message.reason, effects)
        return
        """,
        "forget_up_to(state, message.stream, message.grant_epoch, message.reason, effects)",
    ),
    Mutant(
        "late invalidate obeyed",
        "an invalidate of an older grant ends the present one",
        "grants.forget_up_to",
        "held is not None and held.report.grant_epoch <= grant_epoch",
        "held is not None",
    ),
    Mutant(
        "higher leader epoch ignored",
        "a borrower does not tell a new leader what it holds",
        "LeaderLink._meet_leader",
        "known and state.state in SERVED",
        "False",
    ),
    Mutant(
        "dead leader obeyed",
        "messages of a lower leader epoch count",
        "LeaderLink.receive",
        "message.borrower_id != state.borrower_id or message.leader_epoch < state.leader_epoch",
        "message.borrower_id != state.borrower_id",
    ),
    Mutant(
        "late grant installed again",
        "a doubled grant brings back a stream that was given up",
        "grants.is_new",
        """
        if granted.grant_epoch <= state.ended_epochs.get(granted.stream, 0):
            return False
        """,
        "",
    ),
    Mutant(
        "grant not confirmed",
        "a grant is answered only by the first progress",
        "_take_grants",
        """
        if fresh:
            _send_reports(state, tuple(fresh), False, effects)
        """,
        """
        if False:
            _send_reports(state, tuple(fresh), False, effects)
        """,
    ),
    Mutant(
        "report not sent again",
        "a lost report is repeated only by the next one",
        "take_report",
        "send_again_later(state, held, given.now_ms)",
        "",
    ),
    Mutant(
        "any answer confirms a report",
        "a report counts as durable when an older one is",
        "borrower.grants.note_saved",
        "_says_no_more(held.report, message)",
        "True",
    ),
    Mutant(
        "delivery goes on in silence",
        "a borrower hands out though its leader was silent for 0.6 leases",
        "borrower.state.suspend",
        "effects.append(SuspendDelivery())",
        "pass",
    ),
    Mutant(
        "delivery not resumed",
        "a leader that answers again is not noticed",
        "note_heard",
        "effects.append(ResumeDelivery())",
        "pass",
    ),
    Mutant(
        "lease never lost",
        "a borrower whose lease has ended keeps what it holds",
        "LeaderLink._fire",
        "self._lose_lease(state, effects)",
        "pass",
    ),
    Mutant(
        "unsubscribing never times out",
        "a user that hangs keeps a subscription alive that was left",
        "begin_leaving",
        "state.timers.set(Timer.UNSUBSCRIBE, now_ms + UNSUBSCRIBE_MS)",
        "",
    ),
    Mutant(
        "ghost member",
        "an invalidate while unsubscribing makes a new borrower (EMQX)",
        "borrow_machine.MESSAGES",
        "ending.invalidate_last",
        "ending.invalidate",
    ),
    Mutant(
        "unsubscribed without final reports",
        "a borrower that leaves makes no final report of the records in flight",
        "borrow_machine.TRANSITIONS",
        "_begin_unsubscribing",
        "ending.leave",
    ),
    Mutant(
        "leaving in silence",
        "a leader learns that a member leaves only when that one is gone",
        "borrow_machine._begin_unsubscribing",
        "_send_reports(state, unfinished, False, effects)",
        "",
    ),
    Mutant(
        "granted while leaving",
        "a grant to a borrower that is leaving waits until that one is gone",
        "borrow_machine.MESSAGES",
        "_decline_grants",
        "ignore_message",
    ),
    Mutant(
        "borrower's progress overwritten",
        "a final report forgets what the grant brought along",
        "merge_report",
        "known.progress.merged(report.progress)",
        "known.progress if final else known.progress.merged(report.progress)",
    ),
    Mutant(
        "final report not final",
        "a borrower forgets that its report was final, so it repeats it as an ordinary one",
        "merge_report",
        "held.finished = True",
        "",
    ),
    Mutant(
        "end of what was sent forgotten",
        "a final report leaves out what was sent beyond the frontier",
        "merge_report",
        "frontier if report.sent is None else max(report.sent, frontier)",
        "frontier",
    ),
    Mutant(
        "suspension outlives its borrower",
        "a new borrower delivers nothing because the one before was suspended",
        "Agent._begin_anew",
        "self._delivery.resume(self.subscription)",
        "pass",
    ),
)
