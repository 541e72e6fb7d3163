"""Paragraphs on backups and restores."""

BACKUPS = {
    "DSS1181": """A backup goes into a directory of its own: one that an earlier
        backup made, or one that is empty or not there yet, below a directory that is there, and
        outside of every data directory, which it is to outlive. The message says what is wrong.
        Nothing was written. Name another one: dssctl backup create /backups/dss.""",
    "DSS1182": """A restore makes a directory, and changes none: it is not there yet,
        or empty, and lies in no data directory and in no directory of backups. The message says
        what is in the way. Move a data directory away first, and restore beside it.""",
    "DSS1183": """A newer version wrote the directory or the manifest, and this one
        does not know its format. It was not touched. Use the newer version.""",
    "DSS2068": """The directory has no backup of this number. dssctl backup ls DIR
        lists them; without a number the newest one is taken.""",
    "DSS2164": """A daemon makes one backup at a time, and one process changes a
        directory of backups. Wait for the other one. A tool that was killed holds nothing: its
        lock ends with it.""",
    "DSS2240": """A restore raises the epochs of drivers far above all that were given, so a driver
        from before it publishes nothing more. The job goes on at the chunk where the backup has
        it: stop this driver, and start another one. What was published behind the backup is gone
        with everything else; what the new driver publishes is there once.""",
    "DSS3071": """Before a byte is written it is known how much comes, and the disk
        has less room, with 16 MiB to spare. The daemon's own disk needs room for a copy of its
        store while a backup runs. Remove older backups with dssctl backup rm, or take another
        disk.""",
    "DSS4011": """Bytes of the backup are not those that were written; its checksums
        say so. The file and what is wrong with it are named. Backups that do not have the file
        are not touched by it: dssd verify says of each whether it is whole. Take another
        backup, or the file from another copy of the directory.""",
    "DSS5061": """The backup was not finished. Nothing is counted as a backup that is
        not whole: those of before are as they were, and what was written is removed by the next
        one. The message says whose disk or which file was in the way.""",
}
