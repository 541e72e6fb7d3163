"""Mistakes of what a session gives to its client: `machines/delivery`."""

from dss_sim.mutants.planting import Mutant

IN_DELIVERY = (
    Mutant(
        "doubt ignored",
        "records that a dead holder may have handed out are sent unmarked",
        "Marking._stretches",
        "not marked and low < self._suspect_end",
        "False",
    ),
    Mutant(
        "frontier not reported",
        "a report says only what was handed out before this grant",
        "DeliveredStream.report",
        "records.handed_out()",
        "max(records.marking.known_below(0), records.progress.floor)",
    ),
    Mutant(
        "attempts not reported",
        "known hand-outs end with their grant",
        "DeliveredStream.report",
        "records.marking.attempts()",
        "()",
    ),
    Mutant(
        "redelivered mark dropped",
        "a record comes again without a mark",
        "Marking._stretches",
        "Stretch(low, high, marked, count + 1, most, doubts)",
        "Stretch(low, high, False, count + 1, most, doubts)",
    ),
    Mutant(
        "hand-outs not counted",
        "each redelivery is the second attempt",
        "RecordStates.hand_out",
        "self.marking.note_handed_out_again(sent, self.frontier)",
        "",
    ),
    Mutant(
        "hand-outs counted when sent",
        "records in the client's buffer are charged an attempt",
        "RecordStates.note_out",
        "self.out.add(sent)",
        """
        self.out.add(sent)
        self.marking.note_handed_out_again(sent, self.frontier)
        """,
    ),
    Mutant(
        "mask ignored",
        "records that the filter rejects are handed out",
        "DeliveredStream.fresh",
        """
        (
            chunk is not None
            and not chunk.mask
            and not self.resending
            and self.chunk_at >= self.records.marking.fresh_from
        )
        """,
        """
        (
            chunk is not None
            and not self.resending
            and self.chunk_at >= self.records.marking.fresh_from
        )
        """,
    ),
    Mutant(
        "rejected records never acknowledged",
        "records that the filter rejects hold up the ack floor",
        "DeliveredStream._advance",
        "records.consumed.reject(clipped(chunk.mask, self.chunk_at, to))",
        "pass",
    ),
    Mutant(
        "acked records sent again",
        "the next holder gets records again that were acknowledged above the floor",
        "RecordStates.closed",
        "clipped(self.progress.ranges, start, end)",
        "()",
    ),
    Mutant(
        "refused record forgotten",
        "a nak does not bring the record back",
        "RecordStates._rest",
        "self.resting.rest(low, high, now_ms + rest_ms)",
        "pass",
    ),
    Mutant(
        "ack wait never runs out",
        "a record that the user forgot does not come again",
        "RecordStates.raise_frontier",
        "self.waits.handed_out(max(start, floor), end, now_ms)",
        "pass",
    ),
    Mutant(
        "suspects not halved",
        "after another crash as many records are suspected as before",
        "together_max",
        "max(1, credit >> min(attempts + DOUBT_SHIFT * max(doubts - 1, 0), 63))",
        "credit",
    ),
    Mutant(
        "growth noticed late",
        "a stream that grows while its end is read, or waits to be sent, stays unread",
        "DeliveredStream._note_end",
        "ends and not self.grown",
        "ends",
    ),
    Mutant(
        "credit lost at a nak",
        "the credit of refused records does not come back",
        "DeliveryWindow._refuse",
        "self._dispatch.credit_back(stream, freed)",
        "",
    ),
    Mutant(
        "credit lost at a revoke",
        "the credit of a stream that is taken away does not come back",
        "DeliveryWindow._finish",
        "self._dispatch.credit_back(part, self._left_at_end(part, answered=sent is None))",
        "self._left_at_end(part, answered=sent is None)",
    ),
    Mutant(
        "credit given back twice",
        "expired records give their credit back when they expire and when they are acknowledged",
        "DeliveryWindow._act_due",
        "self._note_failed(stream, expired, now_ms)",
        """
        self._note_failed(stream, expired, now_ms)
        self._note_failed(stream, expired, now_ms)
        """,
    ),
    Mutant(
        "sent while revoking",
        "a stream that is to be given back goes on being delivered",
        "DeliveryWindow._end",
        "self._turns.withdraw(part)",
        "",
    ),
    Mutant(
        "revoke waits for ever",
        "a session waits for the user of a stream that it has to give back",
        "DeliveryWindow._end",
        "part.end(until_ms)",
        "part.end(1 << 62)",
    ),
    Mutant(
        "sent records trusted at a revoke",
        "at the end of a revoke, records that the client did not confirm count as not handed out",
        "DeliveryWindow._act_due",
        "self._finish(stream, stream.records.sent)",
        "self._finish(stream, None)",
    ),
    Mutant(
        "suspended subscription still sends",
        "what was read before a suspension is sent after it",
        "DeliveryWindow._silenced",
        "self._turns.withdraw(self._streams[grant])",
        "pass",
    ),
    Mutant(
        "synchronous ack answered at once",
        "an ack is called durable before its commit",
        "sync_acks._covers",
        "durable.with_acked(acked) == durable",
        "True",
    ),
    Mutant(
        "synchronous ack covers only its own records",
        "a token is answered though acks before it are not durable",
        "DeliveryWindow._settle",
        "records.consumed.done()",
        "acked",
    ),
    Mutant(
        "last acked range taken for a floor",
        "a report with too many acked ranges counts everything below the last one as acked",
        "DeliveredStream.report",
        "records.progress",
        """
        (
            records.progress
            if len(records.progress.ranges) <= ACKED_RANGES_MAX
            else type(records.progress)(records.progress.ranges[-1][1])
        )
        """,
    ),
    Mutant(
        "report cut at the cap",
        "a report with too many acked ranges keeps only the first ones",
        "DeliveredStream.report",
        "records.progress",
        """
        type(records.progress)(
            records.progress.floor, records.progress.ranges[:ACKED_RANGES_MAX]
        )
        """,
    ),
    Mutant(
        "lent at the cap",
        "a stream that is lent at the limit of acked ranges is never read",
        "DeliveredStream.begins",
        "max(ACKED_RANGES_MAX, ranges + RANGES_ADDED_MAX)",
        "ACKED_RANGES_MAX",
    ),
    Mutant(
        "resending waits at the cap",
        "at the limit of acked ranges, the records that would close the gaps are not sent again",
        "Dispatch._send_from",
        "not again and stream.capped()",
        "stream.capped()",
    ),
    Mutant(
        "turn not passed on",
        "a subscription that may not send stays the first to read, and the others wait behind it",
        "RoundRobin.next_reader",
        "turns.rotate(-1)",
        "",
    ),
    Mutant(
        "credit not shared",
        "one subscription takes all of the credit, and another gets nothing",
        "_Unit.room",
        "max(self.reserve, self.most - self.claimed + taken.claim) - taken.out",
        "self.most - self.out",
    ),
    Mutant(
        "everything marked",
        "records that nobody can have seen are marked as perhaps seen",
        "DeliveredStream._send_fresh",
        "Deliver(self.grant, frames, (), False, 1, start, end)",
        "Deliver(self.grant, frames, (), True, 1, start, end)",
    ),
    Mutant(
        "refused records do not rest",
        "a record that its user cannot process comes again at once, and again",
        "RecordStates._rest",
        "backoff_ms(count) if delay_ms is None else delay_ms",
        "0",
    ),
    Mutant(
        "ack wait cut short",
        "a record comes again while its user has time to acknowledge it",
        "RecordStates.__init__",
        "installed.ack_wait_ms",
        "installed.ack_wait_ms // 4",
    ),
    Mutant(
        "rest ends with the grant",
        "a delay that a user chose is forgotten when the stream moves",
        "RecordStates.fate",
        "self.rests.told(self.progress)",
        "()",
    ),
    Mutant(
        "rest passed by no cursor",
        "a new holder sends resting records at once",
        "DeliveredStream.send_part",
        "wanted = without(wanted, records.held_back)",
        "pass",
    ),
    Mutant(
        "passed offsets counted as acked",
        "records that the filter rejects count as acknowledged",
        "Consumed.reject",
        'self._pass(ranges, "filtered")',
        """
        self._pass(ranges, "filtered")
        self.counts = self.counts.plus("acked", len(ranges))
        """,
    ),
)
