"""What the manual says beside the command lines: exit codes, variables, files, signals.

Tests hold the tables against the programs: every exit code, every variable and every key has a row.
"""

EXIT_STATUS = {
    0: "Done, or there is nothing to do.",
    1: "It failed, or a part of it did; a check found a problem.",
    2: "The command line is wrong, or a question could not be asked: no terminal, or --no-input.",
    3: "No daemon answers at the endpoint.",
    4: "There was no answer in time. A change may have been made: see `dssctl ops ls`.",
    5: "What was named is not there.",
    6: "The state does not allow it: it was changed meanwhile, or is in use.",
    7: "It is not permitted.",
    8: "The question was answered with no.",
    10: "A dry run found something to do, and --detailed-exitcode asked to say so.",
    74: "A file, the output or the disk failed.",
    75: "Somebody else holds it.",
    78: "The configuration is wrong.",
    130: "Ctrl-C.",
    141: "Nobody reads the output any more, as in `dssctl events | head -1`.",
}
"""Of `dssctl`; the daemon's own are below."""

DAEMON_EXIT_STATUS = {
    0: "It was told to stop, and has stopped in order; or all is whole.",
    1: "A check found damage.",
    2: "The command line is wrong.",
    70: "An unexpected error; its traceback is on stderr.",
    74: "The disk or the store failed.",
    75: "Another daemon holds the data directory.",
    78: "The configuration is wrong, or the data directory is of a newer version.",
}

ENVIRONMENT = {
    "DSSCTL_ENDPOINT": "Where the daemon listens, unix:PATH, HOST:PORT or dss://HOST:PORT, where "
    "--endpoint does not say it. Programs that use the Python client look at it too, and at the "
    "next four.",
    "DSSCTL_TOKEN_FILE": "A file with this user's token, for daemons beyond unix sockets.",
    "DSSCTL_TLS_CA": "Who signs the certificates of daemons, in PEM, for endpoints with dss://.",
    "DSSCTL_TLS_CERT": "This user's certificate, for the same.",
    "DSSCTL_TLS_KEY": "Its key.",
    "DSSCTL_CONNECT_WAIT": "For how many seconds a unix socket that nobody listens at is tried; 2 "
    "where absent.",
    "NO_COLOR": "Where it is set and not empty, there are no colours.",
    "TERM": "With dumb, there are no colours.",
    "XDG_STATE_HOME": "Below it, in dssd, lies the data directory with the default socket; "
    "~/.local/state where absent.",
    "XDG_CACHE_HOME": "Below it, in dssctl, are kept the names that complete words in a shell; "
    "~/.cache where absent.",
    "XDG_DATA_HOME": "Below it `dssctl completion --install` puts scripts of bash and zsh; "
    "~/.local/share where absent.",
    "XDG_CONFIG_HOME": "Below it `dssctl completion --install` puts the script of fish; ~/.config "
    "where absent.",
    "BASH_COMPLETION_USER_DIR": "Where bash-completion looks for a user's own scripts.",
}

DAEMON_ENVIRONMENT = {
    "XDG_STATE_HOME": "Below it, in dssd, lies the data directory where none is named; "
    "~/.local/state where absent.",
    "NOTIFY_SOCKET": "Set by systemd: it is told when the daemon serves, and how it stands.",
    "WATCHDOG_USEC": "Set by systemd: how often it is to be told that the daemon works.",
    "TMPDIR": "Where --dev keeps its data, and a check the copy of a store.",
}

FILES = {
    "~/.local/state/dssd/dssd.sock": "The default socket.",
    "~/.local/state/dssd/ops.sock": "Beside it: the socket that the daemon keeps free for "
    "operators. It is tried first.",
    "~/.cache/dssctl/names/": "Names that complete words. They may be removed at any time.",
}

DAEMON_FILES = {
    "~/.local/state/dssd/": "The data directory, unless --data-dir or the configuration names "
    "another.",
    "store.sqlite": "In it: groups, their progress, sessions, operations, events.",
    "log/": "In it: the records, a folder a storage topic.",
    "log/quarantine/": "In it: what a start could not read. Nothing is deleted.",
    "dssd.sock, ops.sock": "In it: the sockets, where no other address is named.",
    "LOCK": "In it: which daemon holds the directory.",
}

SIGNALS = {
    "SIGTERM, SIGINT": "Stop: what was accepted is synced, clients are told to come back.",
    "SIGKILL": "Is survived: the next start recovers, and nothing acknowledged is lost.",
}

KEYS = {
    "data_dir": ("a path", "Where everything is kept."),
    "listen": (
        "an address, or a list of them",
        "Where to listen; with a policy as a table of address, tls, clients and names.",
    ),
    "tls_cert": ("a file in PEM", "The certificate for addresses with tls."),
    "tls_key": ("a file in PEM", "Its key."),
    "tls_client_ca": ("a file in PEM", "Who signs the certificates of clients = certs."),
    "metrics": ("HOST:PORT", "Serve metrics to Prometheus on this port."),
    "log_format": ("text or json", "How the log on stderr is written."),
    "reflection": ("true or false", "Let tools like grpcurl ask what is served."),
    "backup": (
        "a table of directory, keep and hook",
        "Where the task backup writes, how many stay (7), and what program is told of each.",
    ),
}
"""Of the daemon's file, with the form of the value."""

CONFIGURATION = """\
# Where everything is kept.
data_dir = "/var/lib/dssd"
# This machine by a socket, others by a port, with a token each.
listen = [
    "unix:/run/dssd/dssd.sock",
    { address = "0.0.0.0:7233", tls = true, clients = "tokens" },
]
tls_cert = "/etc/dssd/cert.pem"
tls_key = "/etc/dssd/key.pem"
tls_client_ca = "/etc/dssd/clients.pem"
metrics = "127.0.0.1:9464"
log_format = "json"
reflection = false
[backup]
directory = "/backups/dss"
keep = 14
hook = "/usr/local/bin/ship-backup"
"""
