"""Paragraphs on DSS3xxx to DSS6xxx: room, damage, the daemon and its connections, sessions."""

SERVICE = {
    "DSS3001": """The disk of the data directory has no room for more records, so publishing is
        refused; reading, acknowledging and administration go on. Nothing that was acknowledged
        is lost. Free space, or shorten a topic's retention with dssctl topics edit; publishing
        then goes on by itself.""",
    "DSS3002": """A bounded queue or table of the daemon is full. The message names it and its
        limit. Nothing was done; try again in a moment. If it happens often, use fewer clients, or
        slow them down.""",
    "DSS3003": """The producer holds as many unacknowledged bytes as it was allowed, because
        the daemon takes them slower than they come. Nothing was lost. Wait with await
        enqueue(), or flush() before going on.""",
    "DSS3004": """The daemon remembers the last numbers of each producer, so that nothing is
        stored twice, and it knows as many producers as it can; all of them are active. A
        program that makes a producer for each record does this. Use one for many records; room
        is made as others fall silent.""",
    "DSS3005": """There are as many sessions as one user, or all together, may have, and none
        of them can give way: they are connected, or hold private subscriptions. Clients that
        leave a session behind at each start do this. Close some, or let clients come back
        under one client id.""",
    "DSS3006": """A topic was made durable while records that it had acknowledged were not
        synced, and the disk has had no room since. What it acknowledges now is durable; those
        records are once there is room. Free space, or shorten a topic's retention.""",
    "DSS4001": """Bytes of the stream on disk are not what was written; their checksums say so.
        The offsets in the message cannot be read, those before and behind can. The file is
        kept. dssctl events tells when it was found, dssd check --deep what else there is.
        Check the disk.""",
    "DSS4002": """The store, which holds topics, groups and progress, is damaged, so the daemon
        does not serve from it. The records in the log are not touched. Restore store.sqlite
        from a backup and check the disk.""",
    "DSS4003": """The numbers in the names of log files come from the store, so a file with a number
        that the store has not given yet was made by a newer store: this one is a backup, or the
        disk dropped what it had synced. A daemon that started on it would give the same
        numbers and offsets again, over records that are there. Put the newest store back. If
        there is none, move the files that it does not know elsewhere: the daemon starts, and
        goes on where this store ends. dssd check lists them.""",
    "DSS5001": """Nothing answers at the endpoint: no daemon runs, it listens elsewhere, or the
        socket belongs to another user. Without --endpoint and DSSCTL_ENDPOINT the default
        socket is tried. Start a daemon, or name where it listens.""",
    "DSS5002": """The daemon was told to stop and ends calls in order. Clients that produce or
        subscribe connect again by themselves once it is back; a single command is to be
        repeated.""",
    "DSS5003": """The connection was lost after the request had left, so it may have been
        carried out or not. A producer sends again under the same number, and it is stored
        once. An acknowledgement ends so too where its stream was taken back before the
        answer: keep what was done with the record; if the acknowledgement did not count, the
        record comes again, marked. After any other call, look before repeating it.""",
    "DSS5004": """No answer came in time; whether the request was carried out is not known. The
        daemon is overloaded, frozen, or unreachable in a way that nobody reports. Look at
        dssctl daemon status, and allow more time with --timeout.""",
    "DSS5050": """No answer came in time, and the process that listens at the daemon's socket is
    stopped: by SIGSTOP, by Ctrl-Z in the terminal that it runs in, or by a debugger. It keeps its
    connections and its store, and goes on where it was after kill -CONT. Members of groups that
    it serves have lost nothing: their streams rest for a while. Only a unix socket tells
    whose it is.""",
    "DSS5005": """A data directory belongs to one daemon at a time, and a living process holds
        it. Stop that one first (its number is in dssctl daemon status), or choose another
        --data-dir.""",
    "DSS5006": """A newer version of the daemon wrote the directory, and this one does not know
        its format. It was not touched. Run the newer version.""",
    "DSS5007": """The disk failed to write, to sync or to read what must be there. After that
        no promise about what is stored can be kept, so the daemon stops at once. Everything
        that was acknowledged before was synced. Look at the system's log, replace the disk if
        need be, run dssd check, then start again.""",
    "DSS5008": """The daemon could not open the address: another process listens there, a file
        of that name is in the way, or it is not allowed. Stop the other process or choose
        another --listen.""",
    "DSS5009": """The caller is known, and has no permission for this. Nothing was done. The hint
        names the role and the topics or groups that would allow it, as a command for an
        administrator; dssctl principals allow keeps what the caller has already. FILTER and NAME
        stand for what the call did not say. Whoever may not know whether a topic, group or job
        exists is told the same as if it did not.""",
    "DSS5010": """The daemon reported a condition that this version of the tool does not know,
        so the daemon is newer. Its own words are in the message. Update the tool.""",
    "DSS5011": """A start needs some room, for its own rows and marks, and the disk has none.
        Nothing was lost and nothing was changed. Free some space and start again.""",
    "DSS5012": """A read of the log failed for a reason that may pass. Nothing is skipped: the
        daemon tries again, and the stream stalls meanwhile. If it stays so, check the disk;
        dssctl events says since when.""",
    "DSS5020": """Once a second the daemon looks whether the files at its paths are those that it
        has open. Somebody moved the directory away, put a backup or another directory in its place,
        or removed it. What is acknowledged now would be found by nobody, so the daemon ends as
        if it was killed, and leaves what is there alone. A directory that was moved has all
        that was acknowledged: start the daemon on it. What was removed is lost; restore a
        backup.""",
    "DSS5021": """The daemon alone may open its store, and SQLite's lock on store.sqlite keeps other
        programs out. That lock is gone, or store.sqlite-wal was removed, by something that
        tidies up, a backup or a copy of a tool. The daemon stops, with all that it
        acknowledged in the store. Find what did it before the next start.""",
    "DSS5030": """The daemon met a mistake in its own code, outside of its core: in a query, a task
        of a schedule, a step of an operation. Only that was ended; records and groups are not
        affected. The request may be done in part: look before you repeat it. The traceback is in
        the daemon's log, and dssctl events --severity error says how often. Please report it.""",
    "DSS6001": """The stream of this grant was lent to somebody else or taken back before the
        acknowledgement came, so it does not count and the record comes again there, marked.
        Where that is not certain, the condition is DSS5003. It is ordinary when members come
        and go. If it is frequent, handlers take longer than the ack wait, or the client is
        frozen at times.""",
    "DSS6002": """Another client connected under the same id, and the newest one has it.
        Usually two instances of a program share a configured id. Give each its own, or none:
        then it is made of user, host, process and program.""",
    "DSS6003": """The daemon keeps no session of this client: it expired, an operator closed
        it, or it never was. Connect anew; dssctl sessions ls shows those that are kept.""",
    "DSS6004": """The client spoke of a subscription that its session does not have; it ended,
        or was never made. Clients of this project do not do that. Subscribe again.""",
    "DSS6005": """The client acknowledged records that were not delivered under the grant.
        Nothing changed. Acknowledge what was delivered, with the record's own ack().""",
    "DSS6006": """A session begins with a message that opens it, and another one came first.
        Clients of this project do so by themselves; other clients have to send Open before
        anything else.""",
    "DSS6007": """An operator evicted this member; its streams went to others in order, and its
        subscription has ended for good. The reason is in the message and in dssctl ops ls. Ask
        before you subscribe again.""",
    "DSS6008": """An operator keeps this client out of the group until the time in the message,
        after an eviction. Nothing else is wrong with it. Undoing the eviction lets it in
        earlier.""",
    "DSS6009": """An operator closed the session. What it held went to others, and its
        subscriptions ended. Nothing is wrong with the client; ask why, then connect anew.""",
    "DSS6010": """The client that a plan names has connected anew since, so its session is
        another one, which nobody decided about. Nothing was changed. Plan again if it is still
        wanted.""",
    "DSS6090": """The group has a retry queue and dead letters, and the client that subscribed is of
        a version that knows nothing of them: it could not tell a retry from a record of the stream.
        Nothing was delivered to it, and nothing is lost. Upgrade the package of the client, then
        subscribe again. Groups without queues go on serving it.""",
}
