"""Mistakes of the shells around sessions, and about time: `dss_sim.sessions` judges them."""

from dss_sim.mutants.planting import Mutant

JUDGE = "dss_sim.sessions.run"

IN_SESSIONS = (
    Mutant(
        "expiry by the wall clock",
        "a session's expiry is measured by a clock that people move",
        "Sessions._expire",
        "over = [each for each in going if each.is_over(now_ms)]",
        """
        wall_ms = self._services.clock.wall_ms()
        over = [
            known
            for known in going
            if known.expires_at_ms is not None
            and kept_ms(known.row) + (known.row.disconnected_at_ms or wall_ms) <= wall_ms
        ]
        """,
        JUDGE,
    ),
    Mutant(
        "no grace",
        "a session of expiry 0 is gone before its client is back",
        "kept_ms",
        "max(row.expiry_ms, GRACE_MS)",
        "row.expiry_ms",
        JUDGE,
    ),
    Mutant(
        "no grace after a restart",
        "a wall clock that jumped while the daemon was down ends every session",
        "Sessions._load_one",
        "max(GRACE_MS, kept_ms(row) - gone_ms)",
        "max(0, kept_ms(row) - gone_ms)",
        JUDGE,
    ),
    Mutant(
        "date from the monotonic clock",
        "the time at which a client left is stored by a clock that the next daemon does not share",
        "Sessions.detach",
        "self._services.clock.wall_ms",
        "self._services.clock.now_ms",
        JUDGE,
    ),
    Mutant(
        "takeover without a new epoch",
        "two connections of a client have one epoch",
        "Sessions._attach",
        "known.row.session_epoch + 1",
        "known.row.session_epoch",
        JUDGE,
    ),
    Mutant(
        "old connection not ended",
        "two connections of a client are served beside each other",
        "LostClients.make_way",
        "older.end(SessionTakenOver(client_id=client_id), is_silent=True)",
        "pass",
        JUDGE,
    ),
    Mutant(
        "old connection not waited for",
        "an older connection still hands out records that the newer one gets too",
        "LostClients.make_way",
        "await older.drain(TAKEOVER_DRAIN_S, charges=True)",
        "pass",
        JUDGE,
    ),
    Mutant(
        "discarded reads as expired",
        "a client whose session another one discarded takes the client id back",
        "check_stored",
        "raise SessionTakenOver(client_id=client_id)",
        "raise SessionNotFound(client_id=client_id)",
        JUDGE,
    ),
    Mutant(
        "expired session made anew",
        "a client that names an expired session is given another, of which it may never learn",
        "check_stored",
        "raise SessionNotFound(client_id=client_id)",
        "return",
        JUDGE,
    ),
    Mutant(
        "old connection ended too early",
        "a connection that a full disk refuses ends the present one",
        "Sessions._attach",
        "version = await session_rows.put(self._services.store, row, stored)",
        """
        if known is not None and known.connection is not None:
            from dss_core.errors import SessionTakenOver
            known.connection.end(SessionTakenOver(client_id=client_id))
        version = await session_rows.put(self._services.store, row, stored)
        """,
        JUDGE,
    ),
    Mutant(
        "old connection still writes",
        "a request of the older connection is stored after the takeover",
        "Session._commit",
        "[self._fence]",
        "[]",
        JUDGE,
    ),
    Mutant(
        "old connection still declares",
        "a private group is made for a session that is gone, or has no row of it",
        "Session._subscribe_to",
        """
        self._services.groups.join(
            parsed,
            start=item.start,
            ack_wait_ms=item.ack_wait_ms,
            session_id=self.session_id,
            subscription=number,
            fence=self._fence,
            beside=lambda group: [Put(row_of(group))],
        )
        """,
        """
        self._services.groups.join(
            parsed,
            start=item.start,
            ack_wait_ms=item.ack_wait_ms,
            session_id=self.session_id,
            subscription=number,
            beside=lambda group: [Put(row_of(group))],
        )
        """,
        JUDGE,
    ),
    Mutant(
        "private group without its row",
        "a group is stored without the subscription that it is for: nobody can leave it",
        "Session._subscribe_to",
        "[Put(row_of(group))]",
        "[]",
        JUDGE,
    ),
    Mutant(
        "principal not checked",
        "whoever knows a client id takes its session over",
        "check_owner",
        "row.principal != opening.principal",
        "False",
        JUDGE,
    ),
    Mutant(
        "clean start resumes",
        "a client that asks for a clean start gets its old session",
        "Sessions._attach",
        "bool(opening.session_id) or not opening.clean_start",
        "True",
        JUDGE,
    ),
    Mutant(
        "always present",
        "a client is told of a session that is not there",
        "Sessions._attach",
        "self._opened(row, opening, present=resume)",
        "self._opened(row, opening, present=True)",
        JUDGE,
    ),
    Mutant(
        "clean start discards nothing",
        "subscriptions and private groups of the old session stay",
        "Sessions._attach",
        """
        if known is not None:
            await self._discard([known.row.session_id])
        """,
        "",
        JUDGE,
    ),
    Mutant(
        "discarded once only",
        "rows that a full disk did not let the daemon delete stay for ever",
        "Sessions._keep",
        "await self._discard_left()",
        "",
        JUDGE,
    ),
    Mutant(
        "belongings before the session",
        "a session that is half discarded can be resumed",
        "Sessions._forget",
        "await session_rows.delete_all(self._services.store, client_ids)",
        """
        for known in going:
            await discard(self._services, known.row.session_id)
        await session_rows.delete_all(self._services.store, client_ids)
        """,
        JUDGE,
    ),
    Mutant(
        "orphans kept",
        "rows of discarded sessions that survived a crash stay for ever",
        "Sessions._load",
        "await discard_orphans(self._services, live)",
        "",
        JUDGE,
    ),
    Mutant(
        "cancelled attach leaves a connection",
        "a client that is gone before its answer is connected for ever",
        "Sessions.attach",
        "self.detach(made.connection)",
        "pass",
        JUDGE,
    ),
    Mutant(
        "who comes is not counted",
        "clients that come together exceed the bound of sessions",
        "Sessions._make_room",
        "self._room.add(principal)",
        "",
        JUDGE,
    ),
    Mutant(
        "resume forgets a subscription",
        "a resumed session does not know all that it had",
        "Session.resume",
        """
        for row, group in rows:
            self._rows[row.subscription] = row, self._services.groups.as_it_is(group)
        """,
        """
        for row, group in rows[1:]:
            self._rows[row.subscription] = row, self._services.groups.as_it_is(group)
        """,
        JUDGE,
    ),
    Mutant(
        "unsubscription only in memory",
        "a subscription that was left is there again after a reconnect",
        "Session._forget",
        """
        await self._commit(gone)
        return
        """,
        "return",
        JUDGE,
    ),
    Mutant(
        "private group outlives its subscription",
        "a private group outlives its subscription, and its records are kept for it",
        "Session._forget",
        "group.kind != EXCLUSIVE",
        "True",
        JUDGE,
    ),
    Mutant(
        "destroyed group declared again by a member",
        "a member that comes back undoes what an operator did",
        "Groups.join",
        "self._declare(asked, over_tombstone=False)",
        "self._declare(asked, over_tombstone=True)",
        JUDGE,
    ),
    Mutant(
        "leaders not told to stop",
        "a daemon that is told to stop waits for its leaders for ever",
        "Registry.__aexit__",
        "actor.stop()",
        "pass",
        JUDGE,
    ),
    Mutant(
        "condition swallows a cancellation",
        "a caller that takes conditions lives on although it was cancelled",
        "uninterrupted.finished",
        "failed is not None and not isinstance(failed, DssError)",
        "failed is not None",
        JUDGE,
    ),
    Mutant(
        "news beyond a step forgotten",
        "of many streams that grew at once only those of one step are read",
        "Scheduler.take_grown",
        "return bool(self._grown)",
        """
        self._grown.clear()
        return False
        """,
        JUDGE,
    ),
    Mutant(
        "leader waits with mail",
        "mail that a leader does not take in one round waits until more mail comes",
        "LeaderActor._lead",
        """
        while self._mailbox and not self._stopped:
            for _ in range(min(len(self._mailbox), ROUND_INPUTS_MAX)):
                if self._stopped:
                    break
                self._glance = None
                given = self._mailbox.popleft()
                for effect in step(leader, given)[1]:
                    self._carry_out(effect, claimed, tasks)
                self._lost_members.look(leader, given.now_ms)
            await asyncio.sleep(0)
        """,
        """
        if self._mailbox and not self._stopped:
            for _ in range(min(len(self._mailbox), ROUND_INPUTS_MAX)):
                if self._stopped:
                    break
                self._glance = None
                given = self._mailbox.popleft()
                for effect in step(leader, given)[1]:
                    self._carry_out(effect, claimed, tasks)
                self._lost_members.look(leader, given.now_ms)
            await asyncio.sleep(0)
        """,
        JUDGE,
    ),
    Mutant(
        "settle beyond a step forgotten",
        "of a settle of many ranges only the last step counts",
        "Session._settle",
        "not await self._settled(step)",
        "True",
        JUDGE,
    ),
    Mutant(
        "one page read",
        "a start knows of as many rows as one scan gives",
        "scan_all",
        "len(page) < page_rows",
        "page or len(page) < page_rows",
        JUDGE,
    ),
)
