"""Paragraphs on DSS217x: what operators cannot do with retry queues and dead letters."""

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
}
