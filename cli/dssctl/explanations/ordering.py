"""Paragraphs on DSS2141 and DSS215x: what would break the order of keys that a group keeps."""

ORDERING = {
    "DSS2141": """A daemon passes over what it does not know of a call. One of a version before
        ordered groups would make a group whose failed records come behind later ones of their key.
        So the client asks first what the daemon knows, and calls nothing if that is missing: no
        group was made, and none was changed.""",
    "DSS2162": """Whoever asked wanted the group removed only if nobody uses it, and a session has
        subscribed to it, or is just doing so: a client that is connected, or one whose session
        waits for it to come back. The group and its progress are as they were. It goes once the
        last of them has unsubscribed, or at once by dssctl groups rm, which asks nobody.""",
    "DSS2163": """A daemon passes over what it does not know of a call. One of a version before
        metadata would make a group without it, one that stays for ever, or remove a group from
        under its members. So the client asks first what the daemon knows, and calls nothing if that
        is missing.""",
    "DSS2225": """A daemon passes over what it does not know of a call. One of a version before
        shards would make an ordered group whose streams are shared out one by one, or grow a topic
        and leave its groups as they are. So the client asks first what the daemon knows, and calls
        nothing if that is missing.""",
    "DSS2150": """The order of a key is that of the log, and a topic keeps the records of a key in
        one stream; two topics have no order between them. So the filter of an ordered group lies
        within one topic, now and whatever topics are made later: orders/# or orders/eu/+ where a
        topic owns orders/#, but not +/eu, and not orders/# where no topic owns all of it. Nothing
        was made or changed. Make the topic first, or a group for each topic.""",
    "DSS2153": """The topic that an ordered group read was removed, and this new one would own some
        of its subjects, and not all of them. The group would read several topics then, which have
        no order between them. Nothing was made. Widen the pattern of the topic, choose other
        subjects, or remove the group.""",
    "DSS2154": """Whether a group keeps the order of keys is settled when it gets its queues. What
        waits in queues without order was passed by later records of its key long ago, and what
        waits in ordered ones may hold them up, so neither becomes the other. Nothing was changed.
        Let members finish what waits, redrive or discard the dead letters; then take the queues and
        give new ones, both while members stay connected.""",
    "DSS2155": """In an ordered group whose dead letters block, all records of a key behind a dead
        one are dead as well, and wait for it. One alone would leave the others dead behind it, or
        wait for those before it. So a redrive takes whole keys: name the key, or an error, and all
        that is dead of the keys comes along. --unordered takes what is named and nothing else: of a
        key its first records come so, to try one; what has dead letters of its key before it goes
        back to them. To go on without a record, discard it, and redrive its key. Nothing was
        changed.""",
    "DSS2156": """To bring whole keys back, all dead letters of a stream have to be looked through
        for them, and a plan reads a bounded part. Nothing was changed. All of a stream is whole by
        itself, whatever its size: name it with --origin. Or let --unordered take what is found of
        it, and the same command the rest afterwards.""",
    "DSS2160": """A shard is a slice of the streams of an ordered group that one member has as a
        whole: all that can hold a key. A group that keeps no order of keys has no use for that: its
        streams are shared out one by one. Nothing was made or changed. Whether a group keeps the
        order of keys is settled when it gets its queues; make another one that does.""",
    "DSS2161": """A shard owns partitions of the topic, so a group has one shard at least, and as
        many as the topic has partitions at most: of the storage topic that has the most of those
        that the group still reads. Nothing was made or changed. Where more members are to work at
        a time, let the topic grow, and give the group more shards then.""",
}
