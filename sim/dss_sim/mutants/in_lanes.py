"""Mistakes about records that fail: `delivery/lane`, the writer of queues, the end of a lane."""

from dss_sim.mutants.planting import Mutant

IN_LANES = (
    Mutant(
        "lane opened over appends under way",
        "appends that a fenced holder had begun become durable after its successor read the queue",
        "QueueWriters.take_over",
        "await writer.idle()",
        "",
    ),
    Mutant(
        "entries of before not applied",
        "a move whose answer was lost is made again by the next holder",
        "Lane.take_entries",
        "self._apply(given.level, fresh)",
        "",
    ),
    Mutant(
        "applied one too high",
        "the next entry counts as applied before it is there",
        "Lane.take_moved",
        "self._note_applied(level, arrived[-1].offset + 1)",
        "self._note_applied(level, arrived[-1].offset + 2)",
    ),
    Mutant(
        "acknowledged on a failed append",
        "a record counts as moved although its append failed",
        "Lane.take_moved",
        "self._moves.put_back(failed, now_ms)",
        """
        for piece in failed:
            self._settle(piece.level, ((piece.start, piece.end),))
        """,
    ),
    Mutant(
        "acknowledged before it is durable",
        "a record counts as moved as soon as its move begins",
        "Lane.next_move",
        "self._retry = self._retry.begin()",
        """
        self._retry = self._retry.begin()
        for piece in pieces:
            self._settle(piece.level, ((piece.start, piece.end),))
        """,
    ),
    Mutant(
        "late ack ignored",
        "a record acknowledged after its ack wait comes again all the same",
        "Lane.acks_of",
        "self._late.take(level, acked)",
        "[]",
    ),
    Mutant(
        "given back before it is moved",
        "records that a client refused while giving a lane back come again without their error",
        "DeliveryWindow._revoke_finished",
        "lane is not None and lane.given_back()",
        "False",
    ),
    Mutant(
        "finished with a retry queue",
        "a sealed stream is over although some of its records wait for their next attempt",
        "LentStream.is_at_end",
        "retry.is_empty",
        "True",
    ),
    Mutant(
        "entry sent before its time",
        "a back-off, or the delay of a user, is forgotten once the record is in a queue",
        "WaitingEntries.wait",
        "max(due_at_ms - self.wall_ahead_ms, 0)",
        "0",
    ),
)
