"""Mistakes of the session's side of the group protocol: `dssd.core.borrower` and its agent."""

from dssd.testing.simulation.mutants.planting import Mutant

IN_BORROWERS = (
    Mutant(
        "connect response unknown",
        "a doubled answer to a request finds no entry (EMQX: crashed the connection)",
        "core/borrower.py",
        "    (_S.CONNECTED, LeaderConnectResponse): ignore_message,\n",
        "",
    ),
    Mutant(
        "invalid stream ends the borrower",
        "the loss of one stream costs all others",
        "core/borrower.py",
        "message.reason, effects)\n        return\n    _drop_all",
        "message.reason, effects)\n    _drop_all",
    ),
    Mutant(
        "grant not confirmed",
        "a grant is answered only by the first progress",
        "core/borrower.py",
        """    if fresh:
        _send_reports""",
        """    if False:
        _send_reports""",
    ),
    Mutant(
        "report not sent again",
        "a lost report is repeated only by the next one",
        "core/borrower.py",
        "        state.timers.set(report.stream, given.now_ms + RESEND_FIRST_MS)\n",
        "",
    ),
    Mutant(
        "delivery not resumed",
        "a leader that answers again is not noticed",
        "core/borrower.py",
        "        effects.append(ResumeDelivery())\n",
        "        pass\n",
    ),
    Mutant(
        "borrower's progress overwritten",
        "a final report forgets what the grant brought along",
        "core/holding.py",
        "    progress = known.progress.merged(report.progress)\n",
        "    progress = known.progress if final else known.progress.merged(report.progress)\n",
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
