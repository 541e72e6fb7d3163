"""``dssctl bench``: how fast the daemon at hand is, seen from here.

Invariant: it touches a topic and a group of its own alone, and removes both however it ends.
"""
