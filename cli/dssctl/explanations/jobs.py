"""Paragraphs on DSS7xxx: bulk jobs."""

JOBS = {
    "DSS7001": """A job is planned as a whole before anything of it runs, and this plan cannot be
        made as it was asked for; the message says why. Nothing was made and nothing was held.""",
    "DSS7002": """Names of jobs are unique, so that a command names one job. A job that has ended
        keeps its name until it is removed, because its manifest says what it did.""",
    "DSS7003": """No job has the name or number: it was never made, was removed, or is spelt
        otherwise. What it published stays where it was published.""",
    "DSS7004": """A job runs, is paused, or has ended; not every change goes in every state. One
        that has ended is only described and removed.""",
    "DSS7005": """Each driver that takes a job gets a higher epoch, and only the highest one may
        publish. So a driver that hung, or was cut off, publishes nothing twice when it comes back.
        It has to stop; what it staged is swept.""",
    "DSS7006": """One driver at a time works on a job. It renews a lease; when it falls silent for
        longer, another one may take the job, and goes on where the manifest says.""",
    "DSS7007": """The daemon checks every frame of a staged file before it publishes the chunk:
        its bytes, its subjects, the partition of each key. One was not as it should be, so nothing
        of the chunk was published. A file that was cut short or swept is staged again.""",
    "DSS7008": """Records that a job copies carry how often they were copied. This one is at the
        limit, which ends jobs that feed each other in a circle.""",
    "DSS7009": """A job that writes to the topic that it reads may read its own copies, and doubles
        the topic for all its readers. That is refused unless it is asked for by name.""",
    "DSS7010": """A job reads exactly the ranges of its plan, and retention had taken a part of
        them before they were held. A job never skips records without a word.""",
    "DSS7011": """Each job keeps its manifest until it is removed, and only so many are kept.
        Remove those that have ended and whose history nobody needs.""",
    "DSS7012": """A manifest is cut once, when the job is made, and its chunks are numbered from 0.
        A driver that commits another number has the manifest of another job.""",
    "DSS7013": """The job has failed or was cancelled. What it had published by then stays
        published, chunk by chunk; the rest was not.""",
    "DSS7014": """A folder of exports belongs to one topic, and each run adds a part of it, so that
        nothing is there twice. This folder says that it holds something else, or another export
        published meanwhile. Nothing of it was changed.""",
    "DSS7015": """A backfill looks at all of its files before anything is published: they are to
        be readable, to have the columns that were named, and all the same types. One is not so.""",
    "DSS7016": """A row makes no record where its key is missing though one is needed, its subject
        breaks a rule, or it is too large. Without a side file for such rows the job ends at the
        first chunk that has one, and nothing of this chunk is published.""",
    "DSS7017": """An export takes what is new since the one before into the same folder. Retention
        or a trim deleted some of a stream in between, so no export can have it any more. The export
        goes on behind it, and notes the gap under "lost" in _dss_export.json of its folder. Offsets
        are not always records: some may have been left out from the beginning.""",
    "DSS7018": """A storage topic of a topic that has grown goes once retention has taken all that
        was in it. The last export into this folder still found it taking records, or found none
        of it, so how much it had in the end nobody knows any more: what lies behind the end of
        its streams in _dss_export.json may be missing. Its number stands there under "gone", and
        the export goes on with those that are there.""",
    "DSS7040": """Bulk jobs on Spark need PySpark, which the extra `spark` of the install has
        (pip install 'dss[spark]'), and a Java runtime of version 17 or newer, which the system's
        packages have. Everything else works without them.""",
    "DSS7041": """A job is made only for a master that takes a connection. A master is written
        as Spark writes it: local[2] is this machine with two tasks at once, spark://HOST:PORT a
        standalone cluster, yarn and k8s://https://HOST:PORT those of their managers.""",
    "DSS7042": """A task, or what runs it, failed for a reason that another attempt did not mend:
        a full disk, a function that raises, a cluster that refuses. The job is failed; what it
        had published by then stays.""",
    "DSS7043": """The process of the engine was killed, or its session was stopped. No record is
        lost or doubled by it: the job waits, and another driver goes on behind the last chunk
        that was published.""",
    "DSS7044": """A transform is a function of a file, FILE.py:NAME, which takes a DataFrame of
        records and returns one. Its file has to be readable and has to define it; what it
        returns needs the columns of records.""",
    "DSS7045": """Our own packages go to the executors with a job, what they stand on does not: the
        Python that PYSPARK_PYTHON names there needs protobuf, grpcio, pyarrow and xxhash, and the
        minor version of the driver's. The job is as it was, nothing was published by the chunks
        under way, and another driver goes on with it.""",
    "DSS7050": """An error came up in a driver that has no words of its own: a mistake in the
        driver, or no memory. It begins anew behind the last chunk that was published, some times,
        and then the job fails, so that whoever waits for it hears of it. What was published stays.
        The log of the driver has the traces.""",
    "DSS7051": """The process that was started to drive the job has ended, killed for instance,
        and no other one has taken the job. Nothing is lost: the job is as it was with the last
        chunk that was published, and another driver goes on. The command that made it has stopped
        waiting, because nothing would come.""",
    "DSS7030": """The audit came to its end, and one of the checks that --fail-on names found
        something. The report has each finding with its first places; the topic was not changed.""",
    "DSS7060": """Offsets name records of one data directory. One that is restored from a backup
        gives the offsets behind the backup again, to other records, and says so by another
        incarnation (dssctl daemon status). A query that went on from its checkpoint would skip
        some of these or take others twice, so it ends. Begin with a new checkpoint, at the time
        of the backup if the older part is to stay.""",
}
