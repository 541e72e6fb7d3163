"""DSS in Spark: a data source for any Spark job, and drivers of bulk jobs on a cluster.

It uses the same manifests, leases, staged files and plain functions over Arrow tables as the local
engine (`dss_bulk`); Spark adds reading, shuffling and sorting on many machines.

Invariant: a task may be repeated by another one, at any time, at the same time, with the same
result; nothing becomes visible except by a commit of the daemon. Importing this package does not
load Spark: modules import it where they need it, and the extra `spark` of the install brings it.
"""
