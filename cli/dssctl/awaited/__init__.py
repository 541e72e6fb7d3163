"""What ``dssctl wait`` waits for: conditions over what a watch tells.

Invariant: conditions are pure. Whether one holds depends only on the picture that it is given.
"""
