"""``dssctl check``: one measurement against bounds, as monitoring systems read it.

Invariant: the exit code says it all, as for Nagios: 0 ok, 1 warning, 2 critical, 3 unknown. Bounds
and results are pure; only the command asks the daemon.
"""
