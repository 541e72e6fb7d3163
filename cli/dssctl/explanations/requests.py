"""Paragraphs on DSS1xxx: the request is wrong, and the caller corrects it."""

REQUESTS = {
    "DSS1001": """A topic, a group, a stream or a client was given a name that cannot be one.
        Names stand in paths, in filters and on command lines, so only letters, digits, '.',
        '_' and '-' are allowed. Choose another name; nothing was created.""",
    "DSS1002": """A filter breaks a rule: '+' or '#' stands beside other characters of a level,
        '#' is not the last level, or the filter is empty or too long. Wildcards of other
        systems ('*', '>', '.') mean nothing here. Write orders/+/eu or orders/#, in quotes
        where the shell would touch it.""",
    "DSS1003": """A queue is a group, and a group has a name; $queue/FILTER without one is how
        another broker writes it. Say which queue is meant: $queue/GROUP/FILTER.""",
    "DSS1004": """Each topic owns the subjects that its patterns match, NAME and NAME/# where
        none were given, and takes records of no other. Publish to the topic that owns the
        subject (dssctl topics ls shows the patterns), or correct the subject.""",
    "DSS1005": """The subject of a record is no legal one: it is empty, too long or too deep,
        or has a wildcard or a control character. The record was not stored. Correct it where
        it is made.""",
    "DSS1006": """One record is larger than the daemon takes, whatever its topic. It was not
        stored. Keep large payloads in a store for files, and publish where they are.""",
    "DSS1007": """A frame, the batch that a producer sends for one stream, has more bytes or
        records than a frame may have. The client of this project never builds such a one;
        another client has to split its batches.""",
    "DSS1008": """A frame arrived whose checksum or structure is wrong, so the daemon stored
        nothing of it. One such frame is an accident on the way: send it again. If they keep
        coming, the program that builds them is broken, or the memory of its machine.""",
    "DSS1009": """A frame is for one partition, and has a record whose key belongs to another.
        The daemon checks it, because the order of a key would be lost. The sender routes by an
        older description of the topic or by another hash: describe the topic again, or update
        the client.""",
    "DSS1010": """A value is outside of its bounds; the message names it and its rule. Nothing
        was done. Give it a value that keeps the rule.""",
    "DSS1011": """dssctl produce stopped at a line that is not a record: it is no JSON object,
        lacks a field that was asked for, or breaks a rule of records. Lines before it are
        published, so correct the line and produce from there on, for example with tail -n
        +LINE.""",
    "DSS1012": """The system bounds the path of a unix socket to about 100 bytes, and the
        default socket lies in the data directory. Give the daemon a shorter --listen
        unix:PATH, and its clients the same as --endpoint.""",
    "DSS1013": """A point in time is written in none of the known ways. Distances from now have
        a sign and units (-15m, +1h30m), dates are of UTC, times of day need a zone
        (2026-11-20T08:00:00Z), seconds since 1970 follow an '@'. Write one of these.""",
    "DSS1014": """The daemon cannot start, or the tool cannot go on, as it was told: an option, a
        line of the configuration file or the data directory is not usable. The message names
        the source and the reason. Nothing was changed. Correct it and start again; of the tool
        dssctl config show --origin tells which value counts.""",
    "DSS1015": """The bytes of a call are not the message that its method takes: another
        protocol speaks there, or stubs of another version. Make the stubs anew from the .proto
        files of the daemon's version.""",
    "DSS1016": """A span of time is written without units, or with unknown ones: whether 30
        means seconds or days is not for the program to guess. Write 30s, 1h30m or 7d.""",
    "DSS1101": """The command line does not fit the command: an option or argument is unknown,
        is missing, or contradicts another. Nothing was done. The help of the command lists
        what it takes.""",
    "DSS1102": """A command that changes something asks before it does, and there is nobody to
        ask: its input is no terminal, or --no-input was given. Look at the plan with
        --dry-run, then pass the flag that confirms it.""",
    "DSS1103": """The question whether to go ahead was answered with something else than yes.
        Nothing changed; run the command again to be asked again.""",
    "DSS1104": """The file that was named is not there, may not be read, or failed while it was
        read. What was published before is counted in the note above the error. Check the path
        and its permissions.""",
    "DSS1105": """What was asked for is neither an error code nor the name of one. Codes have
        four digits, with or without the letters DSS. dssctl errors ls lists them all.""",
    "DSS1106": """A group is its name and its filter together, and one of them is missing.
        Write NAME@FILTER. In double quotes, or in none, a shell replaces $share by nothing:
        use single quotes.""",
    "DSS1107": """The filter names a group ($share/NAME/...), and --group names one beside it.
        Only one of them can be meant. Use --group with the filter alone, as the hint has it.""",
    "DSS1108": """A file of a plan or of offsets is not as dssctl wrote it: it is another kind,
        was cut, or was changed by hand. Nothing was changed. Write it anew with the command in
        the hint.""",
    "DSS1109": """The tool waited for an operation until its timeout, and the operation has not
        ended: members settle what they hold first, and a frozen one keeps its
        streams until its lease is over. The daemon goes on with it. Wait on, or cancel what is
        left.""",
    "DSS1110": """An operation ended without being done: it was cancelled, or its subject is
        gone. Streams that were done before stay done; dssctl ops show has one line for
        each. Plan again for the rest.""",
    "DSS1111": """Standard output could not be written, for want of room or because its device
        failed. A member of a group has acknowledged only what was written before. Make room,
        or write somewhere else, and go on.""",
    "DSS1121": """The context in use, or a flag, a variable or the configuration file, says that
        this target is for looking only, and the command would change something. Nothing was sent to
        the daemon. If it is meant, pass --write for this one command; --dry-run shows a plan
        without it.""",
    "DSS1122": """A protected context wants to know why it is changed, because others will ask
        later. Nothing was changed. Pass --reason with a sentence or the number of a ticket;
        dssctl ops show prints it.""",
    "DSS1123": """In a protected context a person types the name of what is changed, so that a
        habit of answering yes changes nothing. What was typed is another name. Nothing was
        changed. A script passes --confirm NAME.""",
    "DSS1124": """A flag, DSSCTL_CONTEXT or the configuration file names a context that the file
        does not have. No daemon was asked, because it is not known which was meant. dssctl
        config path prints where the file is.""",
    "DSS1125": """A context of that name is there already, and adding never replaces one. Nothing
        was changed. Edit it, remove it, or choose another name.""",
    "DSS1126": """dssctl explain knows the types of items, as kind in JSON has them, and their
        fields. What was asked for is neither. Write group, group.lag or lag; without an argument
        it lists all.""",
    "DSS1130": """The topic was switched to other streams while the producer wrote to it, and its
        client is of a version that would not keep the order of a key, or would store a record
        twice, if it went on. What it had sent and not heard of was answered where it is stored;
        nothing else was stored, and each further record is refused. Upgrade the client to the
        version that the message names, or begin the producer anew, which writes to the new
        streams, and send again what failed.""",
    "DSS1141": """A list was asked for with a filter that cannot be read: an unknown field, a number
        or a span that is none, or a comparison of texts. Nothing was listed, because a list that
        leaves out the wrong things misleads. Join conditions by commas and alternatives by ' or ',
        as in lag>1000,state=stalled or oldest>5m. The hint names the fields, and dssctl explain
        says what they hold.""",
    "DSS1142": """A list was asked for in an order that cannot be read: by a field that it does not
        have, or in a direction that is none. Nothing was listed. Numbers and spans come greatest
        first, the oldest moment first, texts from a to z; -FIELD turns that round, and FIELD:asc or
        FIELD:desc say it. The hint names what this list can be sorted by; dssctl explain says what
        the fields hold.""",
    "DSS1171": """A regular expression was looked for in payloads, and was not done with a few
        records in two seconds. Such a pattern tries the same text in countless ways, mostly
        because of a repeat inside a repeat. Nothing was changed. Write it otherwise, or search
        for a plain word first.""",
    "DSS1172": """dssctl wait ran into its timeout before the condition held; the message has the
        last state. The waiting changed nothing. Find the cause, for example with dssctl groups
        stuck, or wait for longer.""",
    "DSS1190": """Something answers at this address, and says that it has no such call. Usually it
        is another server, because the port is wrong. If dssctl daemon status works, it is a daemon
        of an older version: update it.""",
    "DSS1173": """dssctl bench publishes as fast as it can, only to measure. In a protected context
        that would disturb others, so it is always refused there. Measure a separate daemon on the
        same kind of machine.""",
}
