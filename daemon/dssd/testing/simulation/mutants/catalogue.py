"""Every mutant."""

from dssd.testing.simulation.mutants.in_borrowers import IN_BORROWERS
from dssd.testing.simulation.mutants.in_delivery import IN_DELIVERY
from dssd.testing.simulation.mutants.in_disk import IN_DISK
from dssd.testing.simulation.mutants.in_leaders import IN_LEADERS
from dssd.testing.simulation.mutants.in_lease import IN_LEASE
from dssd.testing.simulation.mutants.in_lending import IN_LENDING
from dssd.testing.simulation.mutants.in_log import IN_LOG
from dssd.testing.simulation.mutants.in_sessions import IN_SESSIONS

MUTANTS = (
    *IN_LENDING,
    *IN_LEADERS,
    *IN_BORROWERS,
    *IN_LEASE,
    *IN_DELIVERY,
    *IN_LOG,
    *IN_DISK,
    *IN_SESSIONS,
)
