"""Paragraphs on DSS2141 and DSS215x: what would break the order of keys that a group keeps."""

ORDERING = {
    "DSS2141": """A daemon ignores the fields of a call that it does not know. One without ordered
        groups would create a group that breaks the order of a key when a record fails. So the
        client first asks for the daemon's features, and makes no call if this one is missing: no
        group was created, and none was changed.""",
    "DSS2162": """The group was to be removed only if nobody uses it, and a session has subscribed
        to it or is just doing so: that of a connected client, or of one that may come back. The
        group and its progress are unchanged. It can be removed once the last of them has
        unsubscribed, or at once by dssctl groups rm, which does not check.""",
    "DSS2163": """A daemon ignores the fields of a call that it does not know. One without metadata
        would create a group that is never removed, or remove a group that has members. So the
        client first asks for the daemon's features, and makes no call if this one is missing.""",
    "DSS2225": """A daemon ignores the fields of a call that it does not know. One without shards
        would create an ordered group whose streams are assigned one by one, or grow a topic without
        changing its groups. So the client first asks for the daemon's features, and makes no call
        if this one is missing.""",
    "DSS2150": """The order of a key is that of the log, and a topic keeps the records of a key in
        one stream; two topics have no order between them. So the filter of an ordered group lies
        within one topic, now and whatever topics are made later: orders/# or orders/eu/+ where a
        topic owns orders/#, but not +/eu, and not orders/# where no topic owns all of it. Nothing
        was made or changed. Make the topic first, or a group for each topic.""",
    "DSS2153": """The topic that an ordered group read was removed, and this new one would own some
        of its subjects, and not all of them. The group would read several topics then, which have
        no order between them. Nothing was made. Widen the pattern of the topic, choose other
        subjects, or remove the group.""",
    "DSS2154": """A group becomes ordered, or not, when it gets its queues. Records in queues
        without order were overtaken by later records of their key; records in ordered queues may
        block their key. So queues of one kind cannot become the other. Nothing was changed. Let
        members finish the retry queue, redrive or discard the dead letters; then remove the queues
        and add new ones. Members stay connected meanwhile.""",
    "DSS2155": """In an ordered group whose dead letters block, all records of a key behind a dead
        one are dead as well, and wait for it. One alone would leave the others dead behind it, or
        wait for those before it. So a redrive takes whole keys: name the key, or an error, and all
        dead letters of these keys come along. --unordered takes only the named ones, so you can try
        the first record of a key; a record behind a dead letter of its key goes back to the dead
        letters. To go on without a record, discard it, and redrive its key. Nothing was
        changed.""",
    "DSS2156": """To bring whole keys back, a plan has to read all dead letters of a stream, and it
        reads a bounded number. Nothing was changed. Redrive the whole stream with --origin: that
        has whole keys, whatever its size. Or let --unordered take those that are found, and repeat
        the command for the rest.""",
    "DSS2160": """A shard is a slice of the streams of an ordered group: all streams that can hold a
        key. One member has the whole shard. A group without order has no use for that: its streams
        are assigned one by one. Nothing was made or changed. Whether a group keeps the
        order of keys is settled when it gets its queues; make another one that does.""",
    "DSS2161": """A shard owns partitions of the topic, so a group has one shard at least, and as
        many as the topic has partitions at most: of the storage topic that has the most of those
        that the group still reads. Nothing was made or changed. Where more members are to work at
        a time, let the topic grow, and give the group more shards then.""",
}
