"""What went wrong in the program that calls: DSS115x."""

PROGRAMS = {
    "DSS1151": """A file could not be written: its folder is not there or not yours, the disk is
        full, or something else than a folder stands in its way. Nothing was changed; what was
        there before is there still.""",
    "DSS1152": """A process was forked after it had opened a client. The thread that serves the
        clients of dss_client.sync, and the threads of gRPC, exist in the parent only, so neither
        the old client nor a new one can work in the child. The parent is not affected. Connect
        after the fork, or begin children by spawn, as multiprocessing does when asked:
        get_context("spawn").""",
    "DSS1153": """All synchronous clients of a process share one thread for their work. A callback
        such as on_grant runs in it, so a call there that waits for an answer would wait for ever.
        Hand what happened to another thread, for example by a queue.""",
    "DSS1154": """Python was about to end and had closed all clients when something, often an
        iterator that was thrown away late or a thread that still ran, called one of them. Use the
        client in a with block, and join your threads before the program ends.""",
    "DSS1155": """A part of the client that few programs use needs a library that is not installed
        with it. Everything else works without. Install the library beside the client.""",
    "DSS1156": """The tool met an error that it has no words for: a mistake in the tool, not in what
        was asked. What it had begun may be done or not: look before it is repeated. Its traceback
        is in the file that the hint names, without arguments and without records.""",
}
