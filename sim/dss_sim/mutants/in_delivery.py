"""Mistakes of what a session gives to its client: `dssd.machines.delivery`."""

from dss_sim.mutants.planting import Mutant

IN_DELIVERY = (
    Mutant(
        "doubt ignored",
        "records that a dead holder may have handed out are sent unmarked",
        "machines/delivery/stream.py",
        "            if not marked and low < self._suspect_end:",
        "            if False:",
    ),
    Mutant(
        "frontier not reported",
        "a report says only what was handed out before this grant",
        "machines/delivery/stream.py",
        "            self.handed_out(),\n",
        "            max(self._granted_frontier, self.progress.floor),\n",
    ),
    Mutant(
        "attempts not reported",
        "known hand-outs end with their grant",
        "machines/delivery/stream.py",
        "        attempts = self.hand_outs.entries()\n",
        "        attempts = ()\n",
    ),
    Mutant(
        "redelivered mark dropped",
        "a record comes again without a mark",
        "machines/delivery/stream.py",
        "                classes.append(Class(low, high, marked, count + 1, most))",
        "                classes.append(Class(low, high, False, count + 1, most))",
    ),
    Mutant(
        "hand-outs not counted",
        "each redelivery is the second attempt",
        "machines/delivery/stream.py",
        """            if run.unsure:
                self._charge_run(run)
                run.unsure = False""",
        """            if run.unsure:
                run.unsure = False""",
    ),
    Mutant(
        "hand-outs counted when sent",
        "records in the client's buffer are charged an attempt",
        "machines/delivery/stream.py",
        "        self.out.add(Run(start, end, gaps, planned.records, size, again, suspects_max))\n",
        "        run = Run(start, end, gaps, planned.records, size, again, suspects_max)\n"
        "        self.out.add(run)\n"
        "        self._charge_run(run)\n",
    ),
    Mutant(
        "mask ignored",
        "records that the filter rejects are handed out",
        "machines/delivery/stream.py",
        "            and not chunk.mask\n",
        "",
    ),
    Mutant(
        "rejected records never acknowledged",
        "what the filter rejects holds the ack floor",
        "machines/delivery/stream.py",
        "            self._pass(clipped(chunk.mask, self.chunk_at, to))\n",
        "            pass\n",
    ),
    Mutant(
        "acked records sent again",
        "what is acknowledged above the floor is not masked at the next holder",
        "machines/delivery/stream.py",
        "        closed = normalised((*chunk.mask, (0, self.progress.floor), "
        "*self.progress.ranges))\n",
        "        closed = normalised((*chunk.mask, (0, self.progress.floor)))\n",
    ),
    Mutant(
        "refused record forgotten",
        "a nak does not bring the record back",
        "machines/delivery/stream.py",
        "                self.resting.rest(low, high, now_ms + rest_ms)\n",
        "                pass\n",
    ),
    Mutant(
        "ack wait never runs out",
        "a record that the user forgot does not come again",
        "machines/delivery/stream.py",
        "            self.waits.handed_out(max(before, self.progress.floor), frontier, now_ms)\n",
        "            pass\n",
    ),
    Mutant(
        "suspects not halved",
        "a crash blames as many records as the time before",
        "machines/delivery/retry.py",
        "    return max(1, whole >> min(hand_outs, 63))",
        "    return whole",
    ),
    Mutant(
        "growth noticed late",
        "a stream that grows while its end is read stays unread",
        "machines/delivery/stream.py",
        "            self.at_tail = not self.grown\n",
        "            self.at_tail = True\n",
    ),
    Mutant(
        "credit lost at a nak",
        "the credit of refused records does not come back",
        "machines/delivery/window.py",
        "                self._credit_back(lent, lent.refuse(nak, now_ms))\n",
        "                lent.refuse(nak, now_ms)\n",
    ),
    Mutant(
        "credit lost at a revoke",
        "the credit of a stream that is taken away does not come back",
        "machines/delivery/window.py",
        "        self._credit_back(lent, lent.out.take_all())\n        self._moved.discard",
        "        lent.out.take_all()\n        self._moved.discard",
    ),
    Mutant(
        "credit given back twice",
        "expired records are counted as out no more, and once more when they are acknowledged",
        "machines/delivery/window.py",
        "            self._credit_back(lent, expired)\n",
        "            self._credit_back(lent, expired)\n"
        "            self._credit_back(lent, expired)\n",
    ),
    Mutant(
        "sent while revoking",
        "a stream that is to be given back goes on being delivered",
        "machines/delivery/window.py",
        "        self._turns.withdraw(lent)\n        lent.end(now_ms",
        "        lent.end(now_ms",
    ),
    Mutant(
        "revoke waits for ever",
        "a session waits for the user of a stream that it has to give back",
        "machines/delivery/window.py",
        "        self._due_by(lent.revoke_until_ms)\n",
        "        lent.revoke_until_ms = 1 << 62\n",
    ),
    Mutant(
        "sent records trusted at a revoke",
        "at the end of a revoke, what the client did not confirm counts as not handed out",
        "machines/delivery/window.py",
        "            self._finish(lent, lent.sent)\n",
        "            self._finish(lent, None)\n",
    ),
    Mutant(
        "suspended subscription still sends",
        "what was read before a suspension is sent after it",
        "machines/delivery/window.py",
        "            self._turns.withdraw(self._lent[grant])\n",
        "            pass\n",
    ),
    Mutant(
        "synchronous ack answered at once",
        "an ack is called durable before its commit",
        "machines/delivery/sync_acks.py",
        "    return durable.with_acked(acked) == durable",
        "    return True",
    ),
    Mutant(
        "synchronous ack covers only its own records",
        "a token is answered though acks before it are not durable",
        "machines/delivery/window.py",
        "self._durable.wait(given.grant, given.token, lent.acked())",
        "self._durable.wait(given.grant, given.token, acked)",
    ),
    Mutant(
        "last acked range taken for a floor",
        "a report of more acked ranges than there may be calls everything below the last one acked",
        "machines/delivery/stream.py",
        "            self.progress,\n            self.handed_out(),\n",
        "            self.progress if len(self.progress.ranges) <= ACKED_RANGES_MAX\n"
        "            else Progress(self.progress.ranges[-1][1]),\n            self.handed_out(),\n",
    ),
    Mutant(
        "report cut at the cap",
        "of more acked ranges than there may be a report has the first ones",
        "machines/delivery/stream.py",
        "            self.progress,\n            self.handed_out(),\n",
        "            Progress(self.progress.floor, self.progress.ranges[:ACKED_RANGES_MAX]),\n"
        "            self.handed_out(),\n",
    ),
    Mutant(
        "lent at the cap",
        "a stream that is lent with as many acked ranges as there may be is never read on",
        "machines/delivery/stream.py",
        "max(ACKED_RANGES_MAX, len(ranges) + RANGES_ADDED_MAX)",
        "ACKED_RANGES_MAX",
    ),
    Mutant(
        "resending waits at the cap",
        "what comes again waits for the gaps to close that it is",
        "machines/delivery/window.py",
        "        if not lent.resending and lent.capped():\n",
        "        if lent.capped():\n",
    ),
    Mutant(
        "credit not shared",
        "one subscription takes all of the credit while another waits",
        "machines/delivery/window.py",
        "        if self._turns.contended and share.records > 0:\n",
        "        if False:\n",
    ),
    Mutant(
        "everything marked",
        "records that nobody can have seen are marked as perhaps seen",
        "machines/delivery/stream.py",
        "        return Deliver(self.grant, frames, (), False, 1, start, end)",
        "        return Deliver(self.grant, frames, (), True, 1, start, end)",
    ),
    Mutant(
        "refused records do not rest",
        "a record that its user cannot process comes again at once, and again",
        "machines/delivery/stream.py",
        "                rest_ms = backoff_ms(count) if delay_ms is None else delay_ms",
        "                rest_ms = 0",
    ),
    Mutant(
        "ack wait cut short",
        "a record comes again while its user has time to acknowledge it",
        "machines/delivery/stream.py",
        "        self.waits = AckWaits(installed.ack_wait_ms)",
        "        self.waits = AckWaits(installed.ack_wait_ms // 4)",
    ),
)
