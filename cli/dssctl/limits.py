"""Every bound of the command line, with its unit last and its reason."""

from dss_core.limits import RECORD_BYTES_MAX

CALL_TIMEOUT_S = 10.0
"""A call that only asks or changes something; a person waits no longer without a word."""

OPERATION_WAIT_S = 300.0
"""For the end of an operation: members settle what they hold, a frozen one for its lease."""

OPERATIONS_LISTED = 50
"""By `ops ls`, unless more are asked for: two screens."""

DOCUMENT_BYTES_MAX = 64 << 20
"""A plan, or exported offsets: of 65,536 streams with some 100 acknowledged ranges each, less."""

CONNECT_WAIT_S = 2.0
"""How long a daemon that is being started is waited for. DSSCTL_CONNECT_WAIT overrides it."""

CONNECT_PAUSE_S = 0.05
"""Between two attempts at it; the transport has pauses of its own."""

INPUT_LINE_BYTES_MAX = 2 * RECORD_BYTES_MAX
"""A record in JSON, base64 included, and room for its field names."""

INPUT_CHUNK_BYTES = 256 << 10
"""Read from the input at once: a few hundred lines, little to hold."""

EVENTS_BEFORE_FOLLOWING = 10
"""Events that are printed before those that come, so that a person sees where they are."""

PIPE_BYTES = 4096
"""Of a pipe that `consume --group` writes to: a page, so that room means that it is empty."""

PIPE_LOOK_MS = 1
"""How long the event loop stands still for a reader; one that waits takes some 20 us."""

PIPE_PAUSE_S = 0.001
"""Before a pipe is looked at again that could not be made small."""

TABLE_INDENT = 4
"""Before the rest of a row that a terminal's line does not hold."""

TABLE_TEXT_COLUMNS_MIN = 24
"""A text in the last column is broken between words there if so much room is left for it; four or
five words a line are still read as a text."""

RUNS_DESCRIBED = 10
"""Runs that the description of a schedule shows; `schedules runs` has all that are kept."""
