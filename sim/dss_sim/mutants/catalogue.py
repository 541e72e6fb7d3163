"""Every mutant, in groups by what it is a mistake in."""

from dss_sim.mutants.in_borrowers import IN_BORROWERS
from dss_sim.mutants.in_delivery import IN_DELIVERY
from dss_sim.mutants.in_disk import IN_DISK
from dss_sim.mutants.in_errands import IN_ERRANDS
from dss_sim.mutants.in_growth import IN_GROWTH
from dss_sim.mutants.in_keys import IN_KEYS
from dss_sim.mutants.in_lanes import IN_LANES
from dss_sim.mutants.in_leaders import IN_LEADERS
from dss_sim.mutants.in_lease import IN_LEASE
from dss_sim.mutants.in_lending import IN_LENDING
from dss_sim.mutants.in_log import IN_LOG
from dss_sim.mutants.in_moves import IN_MOVES
from dss_sim.mutants.in_operations import IN_OPERATIONS
from dss_sim.mutants.in_pauses import IN_PAUSES
from dss_sim.mutants.in_runs import IN_RUNS
from dss_sim.mutants.in_sessions import IN_SESSIONS

GROUPS = (
    IN_LENDING,
    IN_MOVES,
    IN_LEADERS,
    IN_BORROWERS,
    IN_LEASE,
    IN_DELIVERY,
    IN_LANES,
    IN_ERRANDS,
    IN_KEYS,
    IN_GROWTH,
    IN_LOG,
    IN_DISK,
    IN_SESSIONS,
    IN_RUNS,
    IN_PAUSES,
    IN_OPERATIONS,
)
MUTANTS = tuple(mutant for group in GROUPS for mutant in group)
