"""DSS in Spark: a data source for anybody's jobs, and drivers of bulk jobs on a cluster.

It stands on the same manifests, leases, staged files and plain functions over Arrow tables as the
local engine (`dss_bulk`); Spark brings the reading, shuffling and sorting on many machines.

Invariant: what a task does may be done again by another one, at any time, at the same time, with
the same result; nothing becomes visible but by a commit of the daemon. Importing this package costs
no Spark: what needs it imports it where it is needed, and the extra `spark` of the install has it.
"""
