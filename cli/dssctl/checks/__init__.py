"""``dssctl check``: one measurement against bounds, in the conventions of monitoring systems.

Invariant: the exit code tells the result, as for Nagios: 0 ok, 1 warning, 2 critical, 3 unknown.
Bounds and results are pure; only the command asks the daemon.
"""
