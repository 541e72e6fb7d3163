"""Paragraphs on DSS2xxx: what is asked for contradicts what is there."""

CONFLICTS = {
    "DSS2001": """No topic has the name: it was never created, was removed, or is spelt
        otherwise. Topics are not made by publishing to them. Create it, or correct the name.""",
    "DSS2002": """A topic of the name exists, perhaps with other partitions or patterns than
        were asked for. It was left as it is. Scripts that want it in any case pass
        --if-not-exists.""",
    "DSS2003": """A subject belongs to one topic only, so that its records have one order. A
        pattern of the new topic matches subjects that another topic owns. Choose patterns that
        do not meet.""",
    "DSS2004": """No group has the name, or none with that filter: it was never declared, was
        removed, or is spelt otherwise. A group begins with its first member or with dssctl
        groups create.""",
    "DSS2005": """A group of this name and filter exists. It was left as it is, with its
        progress. Scripts that want it in any case pass --if-not-exists.""",
    "DSS2006": """An operator removed the group while this member belonged to it, and its
        progress with it. The subscription has ended and does not begin anew by itself. Create
        the group again with the start that is wanted, then subscribe.""",
    "DSS2007": """A start counts for the first declaration of a group only, and this group
        exists with another one. It was joined nowhere, because its progress would surprise.
        Leave the start out to join it where it is, or move it with dssctl offsets seek.""",
    "DSS2008": """A queue is used only after it was declared, so that a misspelt name does not
        become a queue that keeps records for ever. Declare it as the hint has it.""",
    "DSS2009": """The topic changed (its partitions, or it was removed and made anew) after the
        producer looked at it. Clients of this project describe it again by themselves and send
        on; another client has to do so.""",
    "DSS2010": """The topic goes on in a newer storage topic, and this one takes no more
        records. Clients of this project follow by themselves. What was stored is not affected.""",
    "DSS2011": """A stream is TOPIC/ORDINAL/PARTITION, and there is none of that ordinal or
        partition, or its topic is gone. dssctl topics describe lists the streams of a topic.""",
    "DSS2012": """Somebody else changed the same thing between the look at it and the change,
        so the change was not made. Look again and repeat it if it is still wanted.""",
    "DSS2013": """Groups are told apart by name and filter, and several have this name. The
        message lists them. Write NAME@FILTER for the one that is meant.""",
    "DSS2110": """--if-not-exists accepted the existing one, but it differs from what the other
        flags ask for. Nothing was changed. If that matters, edit what an edit can change, or create
        another one.""",
    "DSS2111": """A group of this name and filter exists, with other settings than asked for. It was
        left as it is, with its progress. If an edit can change that, the hint has the command. Or
        use it as it is: leave out what differs, and pass --if-not-exists.""",
    "DSS2014": """Groups read the topic, and would lose what they have not acknowledged.
        Nothing was removed. Remove the groups first, or pass --force if nobody needs the
        records.""",
    "DSS2015": """The stream does not hold the offset: it was taken by retention, or is yet to
        come. The message has the first and the next offset. Start at earliest, at a time, or
        in between.""",
    "DSS2016": """A producer numbers its frames for each stream, and one or more before this
        one never came, or were refused. The daemon stores nothing behind a gap, so that order
        holds. Send the missing ones first; clients of this project do so by themselves, others
        begin under a new producer id.""",
    "DSS2017": """The daemon can repeat its answer to the last five frames of a producer in a
        stream, and this number is older. It was answered long ago; nothing was stored now. A
        producer that lost its place begins under a new id.""",
    "DSS2018": """A queue and a shared group are declared differently and may not be mixed up
        under one name. The group was left as it is. Use the spelling in the hint.""",
    "DSS2019": """Between the plan and its application another operation or edit changed the
        same group or topic, so the plan may no longer say what would happen. Nothing was
        changed. See what happened with dssctl ops ls, and plan again.""",
    "DSS2020": """Operations that move the cursors of one group come one after the other, and
        one is still at work. Nothing was changed. Wait for its end, or cancel the rest of it.""",
    "DSS2021": """No operation has the number: it never was, or it is so old that it was
        forgotten. dssctl ops ls lists those that are kept.""",
    "DSS2022": """Not everything can be taken back: what was removed is gone, and some
        operations changed nothing that could be restored. The message has the reason. Do the
        opposite by hand where there is one.""",
    "DSS2023": """The operation has ended, so there is nothing to cancel. If its effect is not
        wanted, take it back with dssctl ops undo.""",
    "DSS2024": """An operation id makes a repeated command harmless, and this one names an
        operation that changed something else. Nothing was changed. Use a new id for each
        change.""",
    "DSS2025": """The group's filter meets no subject of the topic of this stream, or there is
        no such stream. dssctl groups describe lists what the group reads.""",
    "DSS2026": """Nobody of this id is a member of the group now: it left, its lease ended, or
        the id is of another group. Borrower ids do not outlive a connection; the id of a
        client does. dssctl groups describe lists the members.""",
    "DSS2027": """Exported offsets do not fit the topics of this daemon: other partitions, or
        fewer records than were acknowledged. Nothing was changed. Compare the file with dssctl
        topics describe.""",
    "DSS2028": """A private subscription belongs to one session, which is its only member for
        its whole life, so operations on members do not apply. End the session instead.""",
    "DSS2029": """A stream was to be taken from its holder, and nobody else in the group could
        take it, so it would only come back. Nothing was changed. Start another member, or
        pause the group.""",
    "DSS2030": """What this operation does cannot be stopped half-way. Wait for its end;
        afterwards dssctl ops undo takes it back if it can be.""",
    "DSS2031": """The daemon remembers only so many producers, and forgot this one, which had
        been silent for long. So it cannot tell whether a frame that is sent again was stored
        before, and stored nothing now. Look in the stream for its last record, then send what
        is missing under a new producer.""",
    "DSS2041": """The stream ends before the offset that was asked for: its record is yet to
        come. The message has the end. Ask for one that is there, or wait for it.""",
    "DSS2042": """No record with the key is kept in the streams that the group reads: it was
        never published there, retention took it, or the key is spelt otherwise. dssctl groups
        describe lists the streams.""",
    "DSS2043": """Records were to be skipped by their key, and none is left: the group has
        acknowledged all that are kept, they were never published where the group reads, or the
        key is spelt otherwise. Nothing was changed. dssctl groups why GROUP --key KEY tells.""",
    "DSS2051": """The watch cannot be resumed: the daemon restarted since, or nobody watched for a
        minute, or more items were removed meanwhile than the daemon remembers. Nothing is wrong:
        start a new watch, which begins with the current state. dss_client and dssctl do so by
        themselves.""",
    "DSS2071": """The offset lies inside of what the stream keeps, but no record has it: the
        daemon was killed or lost its power, and its stream went on behind a gap, so that no
        offset is given twice. Nothing is missing for that reason. The hint has the next
        record.""",
    "DSS2140": """A daemon ignores the fields of a call that it does not know. One without queues
        would create a plain group, which sends a failing record again without end. So before it
        creates or edits a group with queues, the client asks for the daemon's features, and makes
        no call if this one is missing: no group was created, and none was changed.""",
    "DSS2130": """A group can lose its retry queue and dead letters only while both are empty,
        because their records would be lost. Nothing was changed; if records failed during the edit,
        all streams are lent again as before. Let members finish the retry queue. Redrive the dead
        letters, or discard them; then edit the group again.""",
    "DSS2131": """A storage topic with as many partitions as the last one would route every key to
        the same partition. Nothing was changed. More partitions spread the topic over more members,
        fewer make its groups smaller. dssctl topics describe shows what it has.""",
    "DSS2132": """All groups of the topic keep progress for the streams of each storage topic, so
        their number is limited. A sealed one is removed a day after its switch at the earliest,
        once retention has removed all its records. Nothing was changed. Grow in larger steps:
        twelve times the partitions cost one switch, as twice do.""",
    "DSS2133": """A switch moves producers to the next storage topic, and there is none behind the
        one that producers use now. Nothing was changed. dssctl topics grow adds one and switches to
        it in one operation.""",
    "DSS2134": """The topic has a storage topic that was added and has not taken over. To grow adds
        one and switches to it, and a switch goes to the next one in the list, never past it.
        Nothing was changed. Switch to the one that waits, or undo the operation that added it.""",
    "DSS2135": """A bulk job publishes whole files into the storage topic that it found when it
        began, and a switch seals that. Nothing was changed. Wait for the jobs that are named, or
        cancel them, and switch then; what they published stays.""",
    "DSS2136": """Growth needs room in the store: for the rows of another storage topic, or for the
        ends of the old one. The disk had none for a minute. The topic takes records as before, and
        producers only waited; a storage topic that was added already stays, and waits for a
        switch. Free space, and switch to it; if dssctl topics describe shows none that waits, grow
        again.""",
    "DSS2101": """A plain publish stores all or none of the records of one stream, but several
        streams each decide for themselves, and some refused. The message says why. Publish the
        rest again; a producer, which numbers its frames, avoids the doubt.""",
    "DSS2120": """A group with retries keeps the records that failed in topics of its own, and
        this name is one of those. They belong to the group: only it appends to them, they go with
        the group or the topic, and no filter selects them. Nothing was changed. dssctl dlq shows
        what they hold, and brings dead records back.""",
    "DSS2270": """One thread or task closed the client, by close or by the end of its block, while
        another one still took records, read, watched or called. What that had taken and not
        acknowledged comes again. Join threads and tasks before the client is closed; to end a
        subscription from elsewhere, use its drain.""",
    "DSS2121": """Headers with these names are the daemon's: they say which record an entry of a
        retry queue was made of, and what became of it. A record of a producer that had them would
        be taken for one. Nothing of its frame was stored. Give the header another name.""",
}
