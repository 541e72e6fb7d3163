"""Paragraphs on DSS217x and DSS223x: what cannot be done with retry queues and dead letters."""

QUEUES = {
    "DSS2170": """Records that are passed over, or given up, come back by no command, so which they
        are is said: by --key, --error, --member, --from and --to, --origin, or as STREAM@OFFSET.
        --all means every one that is there now. Nothing was changed.""",
    "DSS2171": """A canary is brought back first, and the others follow once it is done with. At
        least one record goes first, and the share of them that may fail is below all. Nothing was
        changed.""",
    "DSS2172": """The redrive stopped itself. What it brought back first failed again, so what makes
        these records fail is not mended yet, and the others were left among the dead letters. The
        canary itself is where its failures left it: it comes again from the retry queue, or is dead
        again. Mend the cause and repeat the command; or let more of the canary fail:
        --canary-percent 10.""",
    "DSS2173": """A daemon passes over what it does not know of a call. One of a version before
        would take a redrive of one member's dead letters for a redrive of all. So the client asks
        first what the daemon knows, and calls nothing if that is missing: nothing was changed.""",
    "DSS2230": """A group without queues lets a record that fails rest in its stream, and come again
        for ever; so none is dead, and there is nothing to copy. With --max-deliver its records
        become dead letters after so many failures. To copy what is in the topic itself, leave out
        --dead-letters.""",
    "DSS2231": """A job that reads dead letters takes what lies dead when it is planned. Here that
        was nothing: nothing has died, all was redriven or discarded, or what is dead is of another
        topic or another time. --start and --end are of when records died.""",
    "DSS2232": """Dead letters of a group are read topic by topic: those of one topic are records
        of that topic. The filter of the group meets other topics than the one that was named.""",
    "DSS2233": """Dead letters that were redriven or discarded one by one leave gaps in the queue,
        and a manifest names each piece that is left. It names a bounded number of them. Bring more
        of them to an end first, with dlq redrive or dlq discard, or make several jobs, of a part of
        the time each.""",
    "DSS2234": """A daemon passes over what it does not know of a call. One of a version before
        would read the topic itself where its dead letters are meant. So the client asks first what
        the daemon knows, and reads nothing if that is missing.""",
}
