"""A daemon that is well, as it stands at a moment."""

from dss_core.answers import Held
from dssd.questions.daemon_facts import DaemonFacts

NOW_MS = 1_800_000_000_000
DAEMON = DaemonFacts(
    version="1",
    pid=7,
    started_at_ms=NOW_MS - 3_600_000,
    data_dir="/d",
    listening=("unix:/d/s",),
    state="serving",
    state_reason="",
    topics=1,
    streams=1,
    groups=1,
    sessions=1,
    sessions_waiting=0,
    log_bytes=0,
    disk_free_bytes=50 << 30,
    sqlite_version="3",
    boot_id="b",
    incarnation="i",
    features=("queues",),
    quarantined=(),
    unread_records_gone=0,
    unread_losses=(),
    errors_in_a_day=0,
    operators_socket="",
    held=Held(7, 4_096, 5, 4_096, 3 << 20, 256 << 20),
    peers=(),
    now_us=NOW_MS * 1_000,
    disk_size_bytes=100 << 30,
    open_files=30,
    open_files_max=65_536,
    sessions_max=65_536,
    producers=2,
    producers_max=187_500,
    before="stopped",
    before_ended_at_ms=0,
    before_reason="",
)
