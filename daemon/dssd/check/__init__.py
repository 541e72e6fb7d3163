"""``dssd check``: whether a data directory is intact, while no daemon runs on it.

Invariant: nothing in the directory is changed. What a start repairs by itself is not damage.
"""
