"""``dssctl bench``: how fast the daemon at hand is, seen from here.

Invariant: it only uses a topic and a group of its own, and removes both however it ends.
"""
