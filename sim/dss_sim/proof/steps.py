"""What the whole proof consists of, cut into steps of some minutes each.

Invariant: the steps of a kind together are all there is of that kind, and each is a command that
ends with 0 where it holds.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dss_sim.mutants.catalogue import MUTANTS

JOBS = 2 * (os.cpu_count() or 1)
TERSE = ("--show-capture=no", "--durations=1")
PYTEST = (sys.executable, "-m", "pytest", "-q", "--jobs", str(JOBS), *TERSE)
"""What the clients of a test logged is left out, and how long each test took: hundreds of lines,
behind which nothing of the reason would be among the last ones."""
MUTANTS_A_STEP = 16


@dataclass(frozen=True, slots=True)
class Step:
    """One command of the proof."""

    kind: str
    """The row of the report that it belongs to."""
    name: str
    """Unique; what the ledger knows it by."""
    command: tuple[str, ...]
    minutes: float
    """What it takes on two cores, about; for the progress bar."""
    full: bool = True
    """Whether its tests run all of their proof, not the sample of `make test`."""


def _seeds(simulator: str, seeds: int, a_step: int, a_minute: int) -> Iterator[Step]:
    for first in range(0, seeds, a_step):
        last = first + a_step - 1
        command = (sys.executable, "-m", f"dss_sim.{simulator}")
        yield Step(
            f"seeds of {simulator}",
            f"{simulator} {first}-{last}",
            (*command, "--first", str(first), "--seeds", str(a_step)),
            a_step / a_minute,
        )


def _tests(kind: str, minutes: float, *arguments: str) -> Step:
    return Step(kind, kind, (*PYTEST, *arguments), minutes)


def _mutants() -> Iterator[Step]:
    names = [mutant.name for mutant in MUTANTS]
    for first in range(0, len(names), MUTANTS_A_STEP):
        some = names[first : first + MUTANTS_A_STEP]
        last = first + len(some) - 1
        command = (sys.executable, "-m", "dss_sim.mutants", *some)
        yield Step("mutants", f"mutants {first}-{last}", command, 0.05 * len(some))


SCENARIOS = "tests/scenarios"
KEEP_CHAOS = "--basetemp=.cache/proof/chaos"
"""What all members said: no seed brings the same run again."""
SIMULATORS = "tests/dss_sim"
LOG = "tests/dssd/log"
STORE = "tests/dssd/store"
TOOL = "tests/dssctl"

STEPS: Sequence[Step] = (
    Step("every test, with samples", "tests", (*PYTEST, "tests"), 5, full=False),
    _tests(
        "many kills under load",
        3,
        f"{SCENARIOS}/test_kill_daemon_under_load.py",
        f"{SCENARIOS}/test_group_loses_members.py",
        f"{SCENARIOS}/test_daemon_killed_under_consumers.py",
        f"{SCENARIOS}/test_fate_of_records.py",
        f"{SCENARIOS}/test_lanes_over_deaths.py",
        f"{SCENARIOS}/test_lanes_over_kills.py",
        f"{SCENARIOS}/test_growing_flights.py",
        f"{SCENARIOS}/test_lanes_over_growth.py",
        f"{SCENARIOS}/test_ordered_growth.py",
        f"{SCENARIOS}/test_rewind_over_growth.py",
        f"{SCENARIOS}/test_topic_grows_under_producers.py",
        "tests/dss_client/test_against_the_daemon.py",
        "tests/dss_client/test_operations.py",
    ),
    _tests("chaos", 11, KEEP_CHAOS, f"{SCENARIOS}/test_chaos.py"),
    _tests(
        "members under both protocols",
        6,
        f"{SCENARIOS}/test_clogged_sockets.py",
        f"{SCENARIOS}/test_ended_by_an_operator.py",
        f"{SCENARIOS}/test_live_rewind.py",
        f"{SCENARIOS}/test_log_that_nobody_reads.py",
        f"{SCENARIOS}/test_lossy_transport.py",
        f"{SCENARIOS}/test_member_comes_back.py",
        f"{SCENARIOS}/test_member_killed.py",
        f"{SCENARIOS}/test_members_handed_over.py",
        f"{SCENARIOS}/test_operators_over_deaths.py",
        f"{SCENARIOS}/test_ordered_over_deaths.py",
        f"{SCENARIOS}/test_pause.py",
        f"{SCENARIOS}/test_restart_reservation.py",
    ),
    _tests(
        "reached from another host",
        4,
        f"{SCENARIOS}/test_reset_in_between.py",
        f"{SCENARIOS}/test_certificates_of_daemons.py",
        f"{SCENARIOS}/test_from_another_namespace.py",
        f"{SCENARIOS}/test_spark_from_another_host.py",
        "tests/dss_client/test_credentials_fuzzed.py",
        "tests/dssd/rpc/test_certificate_times.py",
        "tests/dssd/test_addresses_fuzzed.py",
    ),
    _tests(
        "many records",
        8,
        f"{SCENARIOS}/test_a_million_dead_letters.py",
        f"{SCENARIOS}/test_audited_flights.py",
        f"{SCENARIOS}/test_demo.py",
        f"{SCENARIOS}/test_exports_cut_short.py",
        f"{SCENARIOS}/test_failing_flights.py",
        f"{SCENARIOS}/test_filter_reads_little.py",
        f"{SCENARIOS}/test_operating_on_flights.py",
    ),
    _tests(
        "a million records in order",
        11,
        f"{SCENARIOS}/test_ordered_line.py",
        f"{SCENARIOS}/test_ordered_flights.py",
        f"{SCENARIOS}/test_ordered_growth.py",
        f"{SCENARIOS}/test_rewind_over_growth.py",
    ),
    _tests(
        "faults of bulk jobs",
        4,
        f"{SCENARIOS}/test_bulk_faults.py",
        f"{SCENARIOS}/test_bulk_jobs.py",
        f"{SCENARIOS}/test_local_engine.py",
        f"{SCENARIOS}/test_scheduled_export_disk_full.py",
    ),
    _tests("faults of jobs on Spark", 9, f"{SCENARIOS}/test_spark_faults.py"),
    _tests("reads and jobs on Spark", 4, "tests/dss_spark"),
    _tests(
        "what pages say, command by command",
        6,
        f"{TOOL}/test_manual_examples.py",
        f"{TOOL}/test_replay_page.py",
        f"{SCENARIOS}/test_commands_of_pages.py",
        f"{SCENARIOS}/test_growth_page.py",
        f"{SCENARIOS}/test_operations_page.py",
        f"{SCENARIOS}/test_other_languages_page.py",
        f"{SCENARIOS}/test_readme_page.py",
        f"{SCENARIOS}/test_remote_page.py",
        f"{SCENARIOS}/test_running_page.py",
    ),
    _tests("a crash at every effect", 5, f"{SIMULATORS}/groups/test_scenarios.py"),
    _tests("chains of growths, and crashes", 9, f"{SIMULATORS}/groups/test_chains.py"),
    _tests(
        "the simulators",
        10,
        f"{SIMULATORS}/groups/test_run.py",
        f"{SIMULATORS}/groups/test_cursor_operator.py",
        f"{SIMULATORS}/groups/test_late_answers.py",
        f"{SIMULATORS}/groups/test_strict_plans.py",
        f"{SIMULATORS}/log/test_run.py",
        f"{SIMULATORS}/mutants/test_mutants.py",
        f"{SIMULATORS}/sessions/test_mutants.py",
        f"{SIMULATORS}/sessions/test_run.py",
        f"{SIMULATORS}/test_scale.py",
    ),
    _tests("kill at every system call", 14, f"{SCENARIOS}/test_kill_points.py"),
    _tests("every sync fails", 5, f"{SCENARIOS}/test_disk_errors.py"),
    _tests("the disk is full at every step", 3, f"{SCENARIOS}/test_full_disk_points.py"),
    _tests("records that fail, struck at every call", 25, f"{SCENARIOS}/test_lane_points.py"),
    _tests("operators' steps, struck at every write", 20, f"{SCENARIOS}/test_errand_points.py"),
    _tests(
        "a topic that grows, struck at every call",
        10,
        f"{SCENARIOS}/test_growth_points.py",
        f"{SCENARIOS}/test_older_directory_grows.py",
        f"{SCENARIOS}/test_switch_after_a_cut.py",
    ),
    _tests("backups and restores, struck at every call", 25, f"{SCENARIOS}/test_backup_points.py"),
    _tests(
        "backups among all writes, and who lives through a restore",
        3,
        f"{SCENARIOS}/test_backup_among_writes.py",
        f"{SCENARIOS}/test_backups.py",
        f"{SCENARIOS}/test_restored.py",
    ),
    _tests(
        "directories and clients of earlier versions", 4, f"{SCENARIOS}/test_earlier_versions.py"
    ),
    _tests("every state after a loss of power", 60, f"{SCENARIOS}/test_crash_images.py"),
    _tests(
        "every bit flips",
        10,
        f"{LOG}/segment/test_bit_flips.py",
        f"{LOG}/recovery/test_flips_over_restart.py",
        "tests/dss_core/test_frame_corruption.py",
        f"{STORE}/test_integrity.py",
        f"{STORE}/test_wal_damage.py",
    ),
    _tests(
        "laws of formats and machines",
        4,
        "tests/dss_bulk",
        "tests/dss_core",
        "tests/dss_spark/source/test_progress.py",
        "tests/dss_spark/source/test_slices.py",
        "tests/dssd/jobs",
        "tests/dssd/machines",
        "tests/dssd/leaders/test_lanes.py",
        "tests/dssd/leaders/test_progress_columns.py",
        "tests/dssd/topics/test_growth.py",
        "tests/dssd/schedules/test_cron.py",
        "tests/dssd/access/test_permissions.py",
        "tests/dssd/rpc/test_certificate_times.py",
        f"{LOG}/read/test_reader.py",
        f"{LOG}/read/test_tail_cache.py",
        f"{LOG}/resume/test_marks.py",
        f"{LOG}/segment/test_run_index.py",
        f"{LOG}/test_ceilings.py",
        f"{LOG}/test_sequences.py",
        f"{LOG}/write/test_delayed_sync.py",
        f"{STORE}/test_adapters_agree.py",
        f"{STORE}/test_checksums.py",
        f"{STORE}/test_sqlite.py",
        "tests/dss_client/test_key_order.py",
        "tests/dss_client/test_producer_law.py",
        f"{SIMULATORS}/groups/test_frame_queue.py",
        f"{SIMULATORS}/groups/test_producers.py",
        f"{SIMULATORS}/groups/test_schedule.py",
        f"{SIMULATORS}/power_loss/test_model.py",
        f"{TOOL}/output",
        f"{TOOL}/test_input_records.py",
        f"{TOOL}/test_with_daemon.py",
    ),
    _tests("calls of JetStream, beside a NATS server", 10, "tests/dss_client/jetstream"),
    _tests("every alert fires", 1, "tests/ops/test_monitoring.py"),
    *_seeds("groups", 10_000, 1_000, 3_600),
    *_seeds("sessions", 3_000, 500, 450),
    *_seeds("log", 2_000, 200, 780),
    *_seeds("jobs", 400, 100, 60),
    *_mutants(),
    Step("scale", "scale", (sys.executable, "-m", "dss_sim.scale", "--factor", "1"), 10),
)


def kinds(steps: Iterable[Step] = STEPS) -> list[str]:
    """The rows of the report, in order."""
    return list(dict.fromkeys(step.kind for step in steps))
