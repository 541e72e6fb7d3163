"""What ``dssctl wait`` waits for: conditions over what a watch tells.

Invariant: conditions are pure. Whether one holds depends on the picture that it is given alone.
"""
