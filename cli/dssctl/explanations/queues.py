"""Paragraphs on DSS217x and DSS223x: what cannot be done with retry queues and dead letters."""

QUEUES = {
    "DSS2170": """No command brings back records that were skipped or given up, so you have to
        choose them: by --key, --error, --member, --from and --to, --origin, or as STREAM@OFFSET.
        --all means every one that is there now. Nothing was changed.""",
    "DSS2171": """A canary is a few records that go first; the others follow once these are done. It
        has at least one record, and not all of its records may be allowed to fail. Nothing was
        changed.""",
    "DSS2172": """The redrive stopped itself: its canary failed again, so the cause of the failures
        is not repaired yet, and the others stay dead letters. The records of the canary go on from
        their new failures: they wait in the retry queue, or are dead letters again. Repair the
        cause and repeat the command; or allow more failures: --canary-percent 10.""",
    "DSS2173": """A daemon ignores the fields of a call that it does not know. An older one would
        take a redrive of one member's dead letters for a redrive of all. So the client first asks
        for the daemon's features, and makes no call if one is missing: nothing was changed.""",
    "DSS2230": """In a group without queues a failing record stays in its stream and is sent again
        without end, so there are no dead letters to copy. With --max-deliver N records become dead
        letters after N failures. To copy the topic itself, leave out --dead-letters.""",
    "DSS2231": """A job takes the records that are dead letters when it is planned. There were none:
        no record has died, all were redriven or discarded, or they are of another topic or another
        time. --start and --end are times of death.""",
    "DSS2232": """Dead letters of a group are read topic by topic: those of one topic are records
        of that topic. The filter of the group meets other topics than the one that was named.""",
    "DSS2233": """Dead letters that were redriven or discarded one by one leave gaps in the queue,
        and a manifest names each piece that is left. It names a bounded number of them. Bring more
        of them to an end first, with dlq redrive or dlq discard, or make several jobs, of a part of
        the time each.""",
    "DSS2234": """A daemon ignores the fields of a call that it does not know. An older one would
        read the topic itself instead of its dead letters. So the client first asks for the daemon's
        features, and reads nothing if this one is missing.""",
}
